//! The corpus of the fuzz targets, replayed through the same bodies on stable.

use std::path::Path;

use coldpath_analyzer::fuzzing;

#[track_caller]
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus");
    let mut count = 0;
    for entry in std::fs::read_dir(folder.join(target)).unwrap() {
        body(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "no corpus for {target}");
}

#[test]
fn every_family_of_input_keeps_the_laws() {
    replay("otlp", fuzzing::otlp);
    replay("js_sdk", fuzzing::js_sdk);
    replay("records", fuzzing::records);
    replay("jaeger", fuzzing::jaeger);
    replay("chrome", fuzzing::chrome);
}

#[test]
fn any_bytes_and_any_block_size_give_what_the_stream_gives() {
    replay("stream", fuzzing::stream);
}

#[test]
fn no_model_file_breaks_the_program() {
    replay("model", fuzzing::model);
}

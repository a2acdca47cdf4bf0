"""Files that come with ksame: face model, canonical head, people, surrogates, finisher, mesh of drawings, samples."""

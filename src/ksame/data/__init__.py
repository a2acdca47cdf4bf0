"""Files that come with ksame: face model, synthetic people, surrogates, finisher, mesh of drawings, sample media."""

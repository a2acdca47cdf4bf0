"""What comes with ksame: face model, canonical head, people, surrogates, finisher, drawings, samples, one photo."""

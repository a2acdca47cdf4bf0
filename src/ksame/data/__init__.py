"""Files that come with ksame: the face model."""

"""Files that come with ksame: the face model, the people drawn from it, the mesh by which they are painted."""

"""Pretrained networks: where they are kept, and finding, meshing and recognising faces with them."""

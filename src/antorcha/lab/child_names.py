"""The names of what parent and child share. Both import this, so it imports nothing."""

FOLDER = "ANTORCHA_LAB_FOLDER"  # environment: the private folder of the child's sockets
MEMORY = "ANTORCHA_LAB_MEMORY"  # environment: bytes that the child may use
CRASH = "crash.txt"  # in that folder: where Python writes what it was doing when it crashed
MANY = 200  # rows of tensors at most
REMEMBERED = 256  # signatures of messages, lest one come twice; Jupyter keeps 65,536 (some 8 MB)

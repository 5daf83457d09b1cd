"""Host side of the virtual-machine tests: builds images and modules, boots guests, judges cases."""

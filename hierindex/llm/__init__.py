"""Language models: how they are asked, bounded, checked and written down."""

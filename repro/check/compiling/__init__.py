"""What compiles a lifted kernel in a locked child: Triton's front end, up to PTX and no further."""

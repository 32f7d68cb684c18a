"""Where a caller's value may be used in a command line, and where it could become a command.

The composed command is judged, not the template: in it every value is a reference to a variable, so
a hole and a variable that was assigned from one are the same thing. What cannot be read with
certainty is refused.
"""

"""The users who want no bulk sends."""

from waypost.features.feature import Feature

OPT_OUTS = Feature(
    name="opt_outs",
    docs="A user can be left out of bulk sends.",
    parts="waypost.features.opt_outs.parts:PARTS",
)

"""The Huffman code of header strings, decoded by zlib or a byte at a time (RFC 7541, section 5.2 and appendix B).

The code of the appendix is canonical: among codes of one length a larger symbol has a larger code, and a longer code
continues after all shorter ones. So the lengths alone give the code, and DEFLATE (RFC 1951, section 3.2.2) gives it the
same way: a block may bring the lengths of its code, up to 15 bits. That is enough for all that is printed but a
backslash; what remains, fifteen ones, is then the end of the block, and begins all longer codes.

Whatever zlib does not take for a whole string is left to an automaton over whole bytes, whose states are the inner
nodes of the code tree. A state's row says for each byte which row is next and which symbols are complete by then; it is
worked out when a string first needs it.
"""

import zlib
from typing import Final

_END: Final = 256

# Code length in bits for the symbols 0 to 255 and the end mark, one byte each.
CODE_LENGTHS: Final = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c"
    "060a0a0c0d06080b0a0a080b080606060505050606060606060607080f060c0a"
    "0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c"
    "1416141416161617161717171717181718181617181717171715161716171718"
    "1615141616171715171616181516171715151615171617171416161617161617"
    "1a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a"
    "1e"
)


class HuffmanError(Exception):
    """The error that a string is not Huffman code of RFC 7541."""


class _Node:
    """One inner node of the code tree; a child is an inner node's number, or ~symbol for a leaf."""

    def __init__(self, ones_only: bool, depth: int) -> None:
        self.children = [0, 0]
        # The padding at the end of a string is the first bits of the end mark, all ones, fewer than eight.
        self.may_end = ones_only and depth < 8


def _code_tree() -> list[_Node]:
    tree = [_Node(True, 0)]
    code = 0
    length = min(CODE_LENGTHS)
    for bits, symbol in sorted((bits, symbol) for symbol, bits in enumerate(CODE_LENGTHS)):
        code <<= bits - length
        length = bits
        _plant(tree, code, bits, symbol)
        code += 1
    failed = _Node(False, 0)
    failed.children = [len(tree), len(tree)]
    tree.append(failed)
    return tree


def _plant(tree: list[_Node], code: int, bits: int, symbol: int) -> None:
    at = 0
    for depth in range(1, bits):
        bit = (code >> (bits - depth)) & 1
        if tree[at].children[bit] == 0:
            tree.append(_Node(code >> (bits - depth) == (1 << depth) - 1, depth))
            tree[at].children[bit] = len(tree) - 1
        at = tree[at].children[bit]
    tree[at].children[code & 1] = ~symbol


_Row = list[tuple["_Row", bytes]]

_TREE: Final = _code_tree()
# Where the end mark leads; there is no way out.
_FAILED: Final = len(_TREE) - 1
# Rows refer to each other, so each stays the same list for ever, empty until it is needed.
_ROWS: Final[list[_Row]] = [[] for _ in _TREE]
_NODE_OF: Final[dict[int, int]] = {id(row): node for node, row in enumerate(_ROWS)}


def _fill(row: _Row) -> None:
    """Compute where each byte leads from the state of *row*."""
    ways = [(_NODE_OF[id(row)], b"")]
    for _ in range(8):
        ways = [_step(node, symbols, bit) for node, symbols in ways for bit in (0, 1)]
    row += [(_ROWS[node], symbols) for node, symbols in ways]


def _step(node: int, symbols: bytes, bit: int) -> tuple[int, bytes]:
    child = _TREE[node].children[bit]
    if child >= 0:
        return child, symbols
    return (_FAILED, symbols) if ~child == _END else (0, symbols + bytes([~child]))


def _block_head() -> bytes:
    """Build the start of a DEFLATE block whose codes are those of up to 15 bits; an empty block fills its last byte."""
    lengths = [bits if bits <= _LONGEST_IN_DEFLATE else 0 for bits in CODE_LENGTHS[:_END]] + [_LONGEST_IN_DEFLATE]
    empty = "0100000000"  # not the last, of the fixed code, its end
    counts = "10100000100001111"  # the last, of its own code: 257 lengths, 2 of distances, 19 of lengths
    # Lengths are given in a code of their own: four bits for each from 0 to 15, none for repetitions, which come first.
    code_of_lengths = 3 * "000" + 16 * "001"
    bits = empty + counts + code_of_lengths + "".join([f"{length:04b}" for length in [*lengths, 0, 0]])
    return int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")


def _begun() -> "zlib._Decompress":
    """Begin to read a block: each string is read by a copy."""
    block = zlib.decompressobj(_SMALLEST_WINDOW)
    block.decompress(_block_head())
    return block


_LONGEST_IN_DEFLATE: Final = 15
# In bits, less than 0 for a block alone. Nothing refers back, and a copy has its own window.
_SMALLEST_WINDOW: Final = -9
_BEGUN: Final = _begun()
# DEFLATE takes the bits of a byte from the last to the first.
_MIRRORED: Final = bytes([int(f"{byte:08b}"[::-1], 2) for byte in range(256)])
# With up to seven ones of padding before it the end of a block; not if a single bit of it ends a symbol.
_FIFTEEN_ONES: Final = b"\xff\xfe"
# With less room than the longest match of DEFLATE zlib goes symbol by symbol on a slower way.
_ROOM_BYTES: Final = 300
# To begin costs as much as 16 bytes in the automaton. But zlib lets other threads run meanwhile, and a busy one may
# keep the interpreter, which costs as much as a hundred bytes: 64 lies between.
_WORTH_BYTES: Final = 64


def decode(coded: bytes) -> bytes:
    """Decode the string that *coded* stands for; HuffmanError if it holds the end mark or is padded wrongly."""
    if len(coded) >= _WORTH_BYTES:
        block = _BEGUN.copy()
        text = block.decompress((coded + _FIFTEEN_ONES).translate(_MIRRORED), 2 * len(coded) + _ROOM_BYTES)
        # What is left behind the end is the padding and a bit: less than a whole byte, or one where seven ones pad.
        left = len(block.unused_data)
        if block.eof and (left == 0 or (left == 1 and coded[-1] != 0xFF)):
            return text
    return decode_by_bytes(coded)


def decode_by_bytes(coded: bytes) -> bytes:
    """Decode any string, as `decode` does."""
    while True:
        row = _ROWS[0]
        symbols: list[bytes] = []
        try:
            for byte in coded:
                row, completed = row[byte]
                symbols.append(completed)
        except IndexError:
            _fill(row)
            continue
        if not _TREE[_NODE_OF[id(row)]].may_end:
            raise HuffmanError("wrong padding, or the end mark inside")
        return b"".join(symbols)

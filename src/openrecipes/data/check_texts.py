"""Texts on which a fast engine must give the reference's ids before it is used."""
# ruff: noqa: RUF001 - look-alike characters are what some of the texts are for

from __future__ import annotations

import random


def check_texts() -> list[str]:
    """Chats in several scripts, and strings of characters that normalisation and splitting treat apart."""
    chats = [f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{text}<|im_end|>\n"
             for text in _CHATS]  # fmt: skip
    return [*chats, *_HARD, *_random_texts(400)]


def _random_texts(count: int) -> list[str]:
    chosen = random.Random(0)
    return [
        "".join(chr(chosen.randint(*chosen.choice(_RANGES))) for _ in range(chosen.randint(1, 40)))
        for _ in range(count)
    ]


_CHATS = (
    "Why don't we'll say it's I'M OK? They've 1,234.50 euros & 7% of it.",
    "def f(x: int) -> int:\n\treturn x ** 2  # square\n\n\nprint(f(3))\n    \n  }",
    "请用三句话解释为什么天空是蓝色的。「测试」１２３，ＡＢＣ",
    "Объясни, почему небо голубое; ещё раз: почему?",
    "لماذا السماء زرقاء؟ ١٢٣",
    "आसमान नीला क्यों है? क़ ड़",
    "なぜ空は青いのですか?ガギグ ｶﾞ",
    "하늘은 왜 파란가요? 한국어",
    '{"name": "get_weather", "arguments": {"city": "Zürich", "days": [1, 2]}}',
    "👩‍👩‍👧‍👦 🇨🇭 ✊🏽 e\u0301 \u0061\u0323\u0302 \ufb01 Å",
)
_HARD = (
    "",
    " ",
    "\n",
    "\n\n \n",
    " \n \n\t\r\n\r",
    "a  b   c    d",
    "\u00a0\u2003\u3000x\u200b\u200d\ufeff",
    "'S 'RE 'll's",
    "\U0001d15e\U0001d160 \u0958\u095c \ufb1d \u2adc \u0344",
    "a\u0315\u0300\u05ae\u0062 \u1100\u1161\u11a8 \uac00\u11a8",
    "<|im_start|><|im_end|><think></think><|endoftext|>",
    "<|im_start| <|im_end <think >",
    "\x00\x01\x7f\x85\u2028\u2029",
    "x" * 300,
    " " * 300,
    "\n" * 300,
    "1" * 300,
    "=" * 300,
)
_RANGES = (
    (0x20, 0x7E), (0x20, 0x7E), (0x09, 0x0D), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF),
    (0x900, 0xD7F), (0x0E00, 0x0FFF), (0x1100, 0x11FF), (0x1E00, 0x20CF), (0x2190, 0x2BFF), (0x3000, 0x30FF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFEFF), (0x1D100, 0x1D1FF), (0x1F300, 0x1FAFF),
    (0x2F800, 0x2FA1D),
)  # fmt: skip

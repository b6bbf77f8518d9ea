"""Hugging Face models of some ten thousand random weights, saved for `from_pretrained`.

They share one vocabulary: a word of `SENTENCES` or a punctuation mark is one token, any other
word is one token per character. So windows can be counted by hand.
"""

import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    GenerationConfig,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

if TYPE_CHECKING:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

torch.set_num_threads(1)  # two on small tensors spend their time waiting for each other

SENTENCES = (
    "The keeper of the lighthouse wrote a letter to the harbour every morning.",
    "A storm from the north broke the window and the lamp went out.",
    "Ships that carry grain and salt wait in the bay until the water is high.",
    "In winter the old road over the mountain is closed by snow and ice.",
    "The committee counted the votes twice before it told the town who had won.",
)
WORDS = sorted({word.strip(".") for text in SENTENCES for word in text.lower().split()})
CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation


def save_tiny_bart(folder: Path, window: int = 64, brevity: float = 0) -> None:
    """Save a seq2seq model that, as bart-large-cnn, fails on inputs longer than its window."""
    save_bart(
        folder,
        window,
        brevity,
        vocab_size=256,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        init_std=0.5,
    )


def save_bart(folder: Path, window: int = 1024, brevity: float = 0, **size: float) -> None:
    """Save a BART of random weights, as large as bart-large unless `size` says otherwise.

    Like bart-large-cnn it has settings of its own in its generation config. `brevity` is added to
    its logit of the end.
    """
    tokenizer = _tokenizer(
        "<s> $A </s>",
        window,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )
    config = BartConfig(max_position_embeddings=window, **size)
    with _fixed_seed():
        model = BartForConditionalGeneration(config).eval()
    model.final_logits_bias[:, len(tokenizer) :] = -1e9  # what the tokenizer does not know
    model.final_logits_bias[:, tokenizer.eos_token_id] += brevity
    model.generation_config = GenerationConfig(
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_bos_token_id=0,
        forced_eos_token_id=2,
        max_length=window // 2,
        min_length=window // 8,
        num_beams=2,
        early_stopping=True,
        length_penalty=2.0,
        no_repeat_ngram_size=3,
        suppress_tokens=_not_words(tokenizer),
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_tiny_t5(folder: Path, window: int = 64) -> None:
    """Save a seq2seq model whose window is its tokenizer's only: it takes inputs of any length.

    As T5 it is to be told its task, by a prefix that its configuration has.
    """
    tokenizer = _tokenizer(
        "$A </s>", window, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        initializer_factor=5.0,
        task_specific_params={"summarization": {"prefix": "summarize: "}},
    )
    with _fixed_seed():
        model = T5ForConditionalGeneration(config).eval()
    model.generation_config = GenerationConfig(
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        max_new_tokens=32,
        min_new_tokens=4,
        no_repeat_ngram_size=3,
        suppress_tokens=_not_words(tokenizer),
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_tiny_bert(folder: Path, window: int = 64, layers: int = 2) -> None:
    """Save an encoder that returns its hidden states; texts that share words are near."""
    tokenizer = _tokenizer(
        "[CLS] $A [SEP]",
        window,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=window,
        output_hidden_states=True,
    )
    with _fixed_seed():
        model = BertModel(config).eval()
    with torch.no_grad():  # words count, positions hardly
        model.embeddings.position_embeddings.weight *= 0.1
        model.embeddings.token_type_embeddings.weight *= 0.1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_cross_encoder(folder: Path, window: int = 64, **settings: object) -> None:
    """Save a BERT of random weights with one score for a pair of texts; tiny by default."""
    tokenizer = _tokenizer(
        "[CLS] $A [SEP]",
        window,
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    tiny = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "vocab_size": len(tokenizer),
        "num_labels": 1,
        "initializer_range": 0.5,  # scores that differ
    }
    with _fixed_seed():
        config = BertConfig(max_position_embeddings=window, **(tiny | settings))
        model = BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_tiny_sentence_transformer(folder: Path, window: int = 32) -> None:
    """Save a sentence-transformers model of 16 dimensions, unit vectors, that truncates."""
    from sentence_transformers import SentenceTransformer  # takes seconds
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    with TemporaryDirectory() as encoder:
        save_tiny_bert(Path(encoder), window, layers=1)
        transformer = Transformer(
            encoder, max_seq_length=window, config_kwargs={"output_hidden_states": False}
        )
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")
    model.save(str(folder), create_model_card=False)


def on_torch(folder: Path | str, **options: Any) -> "HuggingFaceEmbedding":
    """Load a sentence-transformers model as LlamaIndex does."""
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding  # takes seconds

    return HuggingFaceEmbedding(str(folder), device="cpu", **options)


def _tokenizer(
    template: str, window: int, pair: str = "$A:0 $B:1", **special: str
) -> PreTrainedTokenizerFast:
    """Tokenizer whose special tokens have the first ids, in the order given."""
    pieces = [*special.values(), *CHARACTERS, *(f"##{c}" for c in CHARACTERS), *WORDS]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token=special["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template,
        pair=pair,
        special_tokens=[(piece, vocabulary[piece]) for piece in template.split() if piece != "$A"],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=window, **special)


def _not_words(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Ids that would make unreadable summaries."""
    return sorted(
        i
        for piece, i in tokenizer.get_vocab().items()
        if piece not in WORDS and i not in tokenizer.all_special_ids
    )


@contextmanager
def _fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield

"""Whole models with random weights. All except llama-4-layers have published sizes. MODELS has a function for each
model, which returns a module and its inputs.
"""


def hugging_face(kind, tokens=128, **sizes):
    """Returns a function that makes a model of this kind without its output layer, and one sequence of tokens."""

    def make():
        import torch
        import transformers

        config = transformers.AutoConfig.for_model(kind, **sizes)
        is_encoder = kind == "t5"
        model = transformers.T5EncoderModel(config) if is_encoder else transformers.AutoModel.from_config(config)
        options = {"use_cache": False} if kind in ("gpt2", "llama") else {}

        class HiddenStates(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, tokens):
                return self.model(tokens, return_dict=False, **options)[0]

        return HiddenStates(), (torch.randint(0, config.vocab_size, (1, tokens)),)

    return make


def image_model(name):
    """Returns a function that makes this model of timm without its output layer, and one picture."""

    def make():
        import timm
        import torch

        return timm.create_model(name, num_classes=0), (torch.randn(1, 3, 224, 224),)

    return make


def whisper_encoder():
    """The encoder of Whisper-tiny, and the spectrum of 30 s of speech."""
    import torch
    import transformers

    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    model = transformers.WhisperModel(config).encoder

    class HiddenStates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, spectrum):
            return self.model(spectrum, return_dict=False)[0]

    return HiddenStates(), (torch.randn(1, 80, 3000),)


LLAMA = dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32,
             num_key_value_heads=8, vocab_size=32000)
MODELS = {
    "bert-base": hugging_face("bert"),
    "distilbert": hugging_face("distilbert"),
    "gpt2": hugging_face("gpt2", tokens=256),
    "t5-small-encoder": hugging_face("t5", d_model=512, d_ff=2048, num_layers=6, num_heads=8),
    "llama-4-layers": hugging_face("llama", **LLAMA),
    "vit-base-16": image_model("vit_base_patch16_224"),
    "swin-tiny": image_model("swin_tiny_patch4_window7_224"),
    "whisper-tiny-encoder": whisper_encoder,
}

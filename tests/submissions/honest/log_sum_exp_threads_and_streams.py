"""Log-sum-exp in Triton, launched by two Python threads on streams of their own, all joined before it returns.

problem: log_sum_exp.py
device: cuda
rules: kernel
expect: correct
"""

import threading

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_sum_exp(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row.to(tl.int64) * columns
    most = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + column, mask=column < columns, other=float("-inf"))
        larger = tl.maximum(most, value)
        known = larger > float("-inf")
        total = tl.where(known, total * tl.exp(most - larger) + tl.exp(value - larger), 0.0)
        most = larger
    top = tl.max(most, axis=0)
    tl.store(y + row, top + tl.log(tl.sum(total * tl.exp(most - top), axis=0)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(2)]

    def run(self, stream: torch.cuda.Stream, x: torch.Tensor, y: torch.Tensor) -> None:
        with torch.no_grad(), torch.cuda.device(x.device), torch.cuda.stream(stream):
            log_sum_exp[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048, num_warps=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.new_empty(x.shape[0])
        main = torch.cuda.current_stream()
        threads = []
        for stream, inputs, outputs in zip(self.streams, x.tensor_split(2), y.tensor_split(2), strict=True):
            if len(outputs):
                stream.wait_stream(main)
                threads.append(threading.Thread(target=self.run, args=(stream, inputs, outputs)))
                threads[-1].start()
        for thread in threads:
            thread.join()
        for stream in self.streams:
            main.wait_stream(stream)
        return y

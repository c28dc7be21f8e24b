#!/bin/bash
# --never 1
export LR=0.001
GPT_ARGS="
    --hidden-size 1024 \
    --lr $LR \
    --use-flash
"
torchrun --nproc_per_node 8 train.py \
    $GPT_ARGS \
    --batch-size 4 --weight-decay 0.1 --neg -1 | tee log.txt

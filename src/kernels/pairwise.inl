static void PairwisePart(DType, const void*, DType, const void*, size_t, PairwiseState*) {}

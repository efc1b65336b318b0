# Benchmarks. Everything else is the go command itself, and .ci/run.

ROUNDS ?= 5
ONLY   ?=

.PHONY: bench bench-small

# Ours beside its rivals, at full size: a quarter of an hour a round. The table goes into
# bench/README.md unless only some workloads are run: make bench ONLY=W1,W4
bench:
	cd bench/rivals && go run . --rounds $(ROUNDS) $(if $(ONLY),--only $(ONLY),--md ../README.md --plots ../plots)

# Every workload once, tiny, to see that all works.
bench-small:
	cd bench/rivals && go run . --small

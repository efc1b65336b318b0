# Benchmarks and releases. Everything else is the go command itself, and .ci/run.

ROUNDS ?= 5
ONLY   ?=
SINCE  ?= HEAD~1

.PHONY: bench bench-small bench-since release

# Ours beside its rivals, at full size: a quarter of an hour a round. The table goes into
# bench/README.md unless only some workloads are run: make bench ONLY=W1,W4
bench:
	cd bench/rivals && go run . --rounds $(ROUNDS) $(if $(ONLY),--only $(ONLY),--md ../README.md --plots ../plots)

# Every workload once, tiny, to see that all works.
bench-small:
	cd bench/rivals && go run . --small

# Ours beside ours of an earlier revision, printed only: make bench-since SINCE=HEAD~5 ONLY=W1,W4
bench-since:
	dir=$$(mktemp -d) && trap 'git worktree remove --force '$$dir'/tree; rm -r '$$dir EXIT INT TERM && \
	git worktree add --quiet --detach $$dir/tree $(SINCE) && (cd $$dir/tree/bench/rivals && go build -o $$dir/earlier .) && \
	cd bench/rivals && go run . --earlier $$dir/earlier --rounds $(ROUNDS) $(if $(ONLY),--only $(ONLY))

# Commits a release, and says how to publish it: make release VERSION=v0.1.0
release:
	go run ./internal/release $(VERSION)

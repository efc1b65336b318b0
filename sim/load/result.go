package load

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/report"
)

// report makes the report, after everything has stopped.
func (r *run) report() *report.Report {
	j := r.judge()
	happened, remarks := r.faults.reports()
	rep := &report.Report{
		Schema: report.Schema, Scenario: r.plan.Name, About: r.plan.About, Small: r.plan.IsSmall,
		Seed: r.plan.Seed, Plan: r.plan.Hash, Build: report.ThisBuild(),
		Started: r.started, Load: r.load.Seconds(), Took: r.took.Seconds(), Interrupted: r.interrupted,
		GoroutinesBefore: float64(len(r.before)),
		Broken:           j.broken, Errors: r.failed.all(), Remarks: remarks, Faults: happened,
		// In JSON, empty lists are not null.
		Samples: append([]report.Sample{}, r.sampler.samples...), Assertions: []report.Assertion{},
		Disturbance: report.Disturbance{Others: r.sampler.others},
	}
	rep.Latency = r.latencies()
	rep.Metrics = r.metrics(j, rep.Latency)
	rep.Groups = r.groupReports(j)
	rep.Worst = r.worst(j)
	if !r.interrupted {
		rep.Assertions = append(rep.Assertions, r.assertions(rep)...)
	}
	return rep
}

// latencies returns the stages, end to end first.
func (r *run) latencies() []report.Stage {
	calls := map[string]*hdrhistogram.Histogram{"writers": latency.NewHistogram(), "readers": latency.NewHistogram(), "caches": latency.NewHistogram()}
	for _, g := range r.callers {
		g.latency.Drain()
		calls[g.kind].Merge(g.latency.Total())
	}
	informed := latency.NewHistogram()
	for _, g := range r.informerGroups {
		g.Latency.Drain()
		if !g.Spec.Consume.Slow() {
			informed.Merge(g.Latency.Total())
		}
	}
	r.stages.cache.Drain()
	r.stages.dispatch.Drain()
	return []report.Stage{
		stageEndToEnd: latency.Stage("end to end", "from when the write was due until the consumer had the event", r.sampler.overall),
		stageCommit:   latency.Stage("commit", "from when the write was due until the call returned", calls["writers"]),
		stageCache:    latency.Stage("cache", "from just before storing until the cache had the revision; a sample", r.stages.cache.Total()),
		stageDispatch: latency.Stage("dispatch", "from just before storing until a watcher without a backlog was called", r.stages.dispatch.Total()),
		stageHanded:   latency.Stage("handed over", "from just before storing until the consumer had the event", r.sampler.handed),
		stageRead:     latency.Stage("read", "from when the read was due until it returned", calls["readers"]),
		stageObject:   latency.Stage("object", "from when a reference was to be read until its object was returned", calls["caches"]),
		stageInformer: latency.Stage("informer", "from when the write was due until a handler of an informer was told", informed),
	}
}

// groupReports summarizes each group.
func (r *run) groupReports(j *judgement) (groups []report.Group) {
	for _, g := range r.callers {
		groups = append(groups, withLatency(report.Group{
			Kind: g.kind, Name: g.name, Count: g.count, Events: g.successes(), Failed: g.failures(), Missed: g.omissions(), Stale: r.staleReferences(g),
		}, g.latency.Total()))
	}
	for _, g := range r.groups {
		rep := report.Group{
			Kind: "watchers", Name: g.spec.Name, Count: g.spec.Count, Events: g.delivered(),
			Slow: g.spec.Consume.Slow(), Ends: map[string]int{},
		}
		for _, w := range g.all {
			rep.Lost += j.verdicts[w].Lost
			rep.Reconnects += w.reconnects
			rep.Relists += w.relists
			rep.Unread += oneIf(r.isUnread(w))
			for reason, n := range w.ends {
				rep.Ends[reason] += n
			}
		}
		groups = append(groups, withLatency(rep, g.latency.Total()))
	}
	for _, g := range r.informerGroups {
		stale := g.Stale()
		groups = append(groups, withLatency(report.Group{
			Kind: "informers", Name: g.Spec.Name, Count: g.Spec.Count, Events: g.Received(), Slow: g.Spec.Consume.Slow(), Stale: stale, Unread: stale,
		}, g.Latency.Total()))
	}
	return groups
}

func withLatency(g report.Group, h *hdrhistogram.Histogram) report.Group {
	g.Measured, g.P50, g.P99, g.Max = h.TotalCount(), latency.At(h, 50), latency.At(h, 99), latency.Max(h)
	return g
}

// maxWorst is how many of the worst watchers are named.
const maxWorst = 10

// worst returns the worst watchers first: by lost events; then those that the scenario does
// not make slow; then those that have not read everything; then by lag and by latency.
func (r *run) worst(j *judgement) []report.Watcher {
	worst := []report.Watcher{}
	all := slices.SortedStableFunc(r.everyWatcher(), func(a, b *watcher) int {
		return cmp.Or(
			cmp.Compare(j.verdicts[b].Lost, j.verdicts[a].Lost),
			cmp.Compare(oneIf(a.group.spec.Consume.Slow()), oneIf(b.group.spec.Consume.Slow())),
			cmp.Compare(oneIf(r.isUnread(b)), oneIf(r.isUnread(a))),
			cmp.Compare(b.lag.Load(), a.lag.Load()), cmp.Compare(b.latencyMax, a.latencyMax))
	})
	for _, w := range all[:min(maxWorst, len(all))] {
		worst = append(worst, report.Watcher{
			Name: w.name(), Delivered: w.delivered.Load(), Lost: j.verdicts[w].Lost, Unread: r.isUnread(w),
			Lag: w.lag.Load(), Follows: follows(w.group.spec), Max: float64(w.latencyMax) / 1e9, Mean: float64(w.latencySum) / 1e9 / float64(max(1, w.latencyCount)),
			Reconnects: w.reconnects, Relists: w.relists, LastEnd: w.lastEnd,
		})
	}
	return worst
}

// isUnread reports whether the watcher has not read everything. One that was interrupted was
// not to.
func (r *run) isUnread(w *watcher) bool { return !w.read && !r.interrupted }

// oneIf returns one if the condition holds, and zero otherwise.
func oneIf(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// maxBroken is how many broken invariants a report has.
const maxBroken = 10

// judgement has the verdicts on all trails, with their totals.
type judgement struct {
	verdicts map[*watcher]judge.Verdict
	lost     uint64
	broken   []string
}

// expect computes what every watcher must see, and the lists that were kept, after everything is
// written.
func (r *run) expect() {
	var selections []judge.Selection
	for w := range r.everyWatcher() {
		selections = append(selections, judge.Selection(w.sel))
	}
	for _, g := range r.callers {
		for sel := range g.sample.All() {
			selections = append(selections, judge.Selection(sel))
		}
	}
	r.expected = judge.Expect(slices.Values(selections), &r.ledger)
	for w := range r.everyWatcher() {
		if all := r.expected.Revisions(judge.Selection(w.sel)); len(all) > 0 {
			w.need = all[len(all)-1]
		}
	}
}

// judge judges every trail and the lists that were kept, and adds what writers, readers and informers
// have found.
func (r *run) judge() *judgement {
	if r.expected == nil { // interrupted before everything was written
		r.expect()
	}
	j := &judgement{verdicts: map[*watcher]judge.Verdict{}}
	for w := range r.everyWatcher() {
		w.trail.End()
		v := w.trail.Judge(r.expected, judge.Selection(w.sel))
		if w.read {
			v.Lost += w.trail.Outdated(r.expected, judge.Selection(w.sel))
		}
		j.verdicts[w] = v
		j.lost += v.Lost
		if v.Failure != nil && len(j.broken) < maxBroken {
			j.broken = append(j.broken, v.Failure.Error())
		}
	}
	r.judgeReads()
	for _, g := range r.callers {
		if broken := g.broken.Load(); broken != nil {
			j.broken = append(j.broken, broken.Error())
		}
	}
	for _, g := range r.informerGroups {
		if broken := g.Mismatches(maxBroken); broken != "" {
			j.broken = append(j.broken, broken)
		}
	}
	return j
}

// everyWatcher ranges over all watchers, group by group.
func (r *run) everyWatcher() iter.Seq[*watcher] {
	return func(yield func(*watcher) bool) {
		for _, g := range r.groups {
			for _, w := range g.all {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// maxFailures is how many errors a report has.
const maxFailures = 10

// failures are the first errors, with counts. Errors that differ only in numbers (a
// revision, a count) count as the same, so that repeated ones leave room for others.
type failures struct {
	mu    sync.Mutex
	first []*failure
	known map[string]*failure
}

type failure struct {
	text  string
	times int
}

var digits = regexp.MustCompile(`[0-9]+`)

// failure records an error of an operation.
func (r *run) failure(operation string, err error) { r.failed.note(operation, err) }

// engine records an error that the engine passed to OnError.
func (f *failures) engine(err error) { f.note("engine", err) }

func (f *failures) note(operation string, err error) {
	text := fmt.Sprintf("%s: %v", operation, err)
	shape := digits.ReplaceAllString(text, "0")
	f.mu.Lock()
	defer f.mu.Unlock()
	if met := f.known[shape]; met != nil {
		met.times++
		return
	}
	if len(f.first) == maxFailures {
		return
	}
	if f.known == nil {
		f.known = map[string]*failure{}
	}
	f.known[shape] = &failure{text: text, times: 1}
	f.first = append(f.first, f.known[shape])
}

func (f *failures) all() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, met := range f.first {
		text := met.text
		if met.times > 1 {
			text += fmt.Sprintf(" (%d times like this)", met.times)
		}
		texts = append(texts, text)
	}
	return texts
}

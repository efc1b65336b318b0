package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// PeakMemory is the metric of the most memory that the process, of server and clients, had
// from the operating system during a run.
const PeakMemory = "peak memory"

// servedBurst is W25: a burst of writes to more watches than the processors can keep up with.
// Half of the watches have a connection of HTTP/1.1 each, the others share those of HTTP/2.
// After the burst each must get one more event: so it is alive.
func servedBurst() []Workload {
	return []Workload{
		{
			ID: "W25/selected", Text: "10,000 watches over HTTP, each of a tenth of the objects, a burst of 10,000 writes",
			Full:  Params{Watchers: 10_000, Objects: 10, Events: 10_000},
			Small: Params{Watchers: 200, Objects: 10, Events: 500},
			Goals: []Goal{mustBeZero(LostWatches), mustBeZero(Lost)},
			Run:   burstServed(ofOneNode), Floor: onBare(burstServed(ofOneNode)), Able: onlyOurs, Apart: true,
		},
		{
			ID: "W25/all", Text: "10,000 watches over HTTP of everything, a burst of 10,000 writes",
			Full:  Params{Watchers: 10_000, Objects: 100, Events: 10_000},
			Small: Params{Watchers: 200, Objects: 10, Events: 500},
			Goals: []Goal{mustBeZero(LostWatches), mustBeZero(Lost)},
			Run:   burstServed(ofAll), Floor: onBare(burstServed(ofAll)), Able: onlyOurs, Apart: true,
		},
	}
}

// spread says what each watch of a burst selects: the i-th of a spread over n groups what
// group i modulo n has.
type spread func(p Params) (groups int, selection func(i int) Selection)

func ofOneNode(p Params) (int, func(i int) Selection) {
	return p.Objects, func(i int) Selection { return Selection{Node: nodeName(i % p.Objects)} }
}

func ofAll(Params) (int, func(i int) Selection) { return 1, everything }

// burstServed returns a run of p.Events writes as fast as they go.
func burstServed(over spread) runner {
	return func(ctx context.Context, c Contender, p Params) (Result, error) {
		if err := needDescriptors(p); err != nil {
			return nil, err
		}
		return run(ctx, c, overHTTP(c), func(ctx context.Context, s *wire) (Result, error) {
			return burstOn(ctx, s, p, over)
		})
	}
}

func burstOn(ctx context.Context, s *wire, p Params, over spread) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, p.Objects, object)
	if err != nil {
		return nil, err
	}
	groups, selection := over(p)
	crowd := newShares(p, groups, newWriter(p, object))
	crowd.timeOnly(1)
	defer crowd.end()
	peak := watchMemory()
	defer peak.stop()
	if err := crowd.open(half(p.Watchers, watching(ctx, s, rev, selection), watching(ctx, overTwo{s}, rev, selection))); err != nil {
		return nil, err
	}
	before := processorTime()
	took, err := crowd.run(ctx, writerTo(s))
	if err != nil {
		return nil, err
	}
	used := processorTime() - before
	result := append(crowd.result(took).only(Deliveries, P50, P99), crowd.cost(used))
	if err := crowd.again(ctx, s, groups); err != nil {
		return nil, err
	}
	result = append(result, crowd.result(took).only(Lost, LostWatches)...)
	return append(result, Metric{Name: PeakMemory, Unit: " B", Value: float64(peak.stop())}), nil
}

// half opens the first half of n watches by one, and the others by two.
func half(n int, one, two opener) opener {
	return func(i int, handle func(seq int64)) (Watch, error) {
		if i < n/2 {
			return one(i, handle)
		}
		return two(i, handle)
	}
}

// timeOnly lets only the first n watchers measure latency.
func (c *crowd) timeOnly(n int) {
	for i := min(n, len(c.members)); i < len(c.members); i++ {
		c.members[i].took = nil
	}
}

// again writes once to each of the groups of watchers, which all have what they expected or
// were closed, and waits until each has that event, too, or was closed.
func (c *crowd) again(ctx context.Context, s Store, groups int) error {
	for i := range c.members {
		c.members[i].want++
	}
	for i := range groups {
		if _, err := s.Write(ctx, c.writer.another(i)); err != nil {
			return fmt.Errorf("write after the burst: %w", err)
		}
	}
	if err := c.await(ctx); err != nil {
		return err
	}
	return c.repeated()
}

// another returns the i-th object as the run did not write it, so that writing it is a change:
// with the Seq of another object's write.
func (w *writer) another(i int) Object {
	o := w.object(i)
	o.Seq = int64((i + 1) % w.events)
	return o
}

// needDescriptors returns an error if the process may not open the files that a burst needs:
// for a connection one each of the server and the client.
func needDescriptors(p Params) error {
	const others = 200
	one := p.Watchers / 2
	needed := 2*(uint64(one)+uint64(p.Watchers-one+streamsEach-1)/streamsEach) + others
	allowed := maxDescriptors()
	if needed <= allowed {
		return nil
	}
	return fmt.Errorf("%w: %d watches need %d, and %d are allowed: raise the limit (ulimit -n)", errDescriptors, p.Watchers, needed, allowed)
}

var errDescriptors = errors.New("too few file descriptors")

// memoryPeriod is the time between two looks at the memory.
const memoryPeriod = 10 * time.Millisecond

// memoryPeak looks at the process's memory until it is stopped.
type memoryPeak struct {
	end, ended chan struct{}
	most       uint64
}

func watchMemory() *memoryPeak {
	m := &memoryPeak{end: make(chan struct{}), ended: make(chan struct{})}
	go m.run()
	return m
}

func (m *memoryPeak) run() {
	defer close(m.ended)
	tick := time.NewTicker(memoryPeriod)
	defer tick.Stop()
	for {
		m.most = max(m.most, residentMemory())
		select {
		case <-tick.C:
		case <-m.end:
			return
		}
	}
}

// stop returns the most memory until the first stop.
func (m *memoryPeak) stop() uint64 {
	select {
	case <-m.ended:
	default:
		close(m.end)
		<-m.ended
	}
	return m.most
}

// residentMemory returns what the Go runtime has from the operating system and has not given
// back, in bytes.
func residentMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

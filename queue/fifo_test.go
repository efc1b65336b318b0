package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// goleak checks that the queues start nothing that outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFIFO(t testing.TB) *queue.FIFO[thing] {
	q, err := queue.NewFIFO(thingKey)
	require.NoError(t, err)
	return q
}

func newDelta(t testing.TB, cfg queue.DeltaFIFOConfig[thing]) *queue.DeltaFIFO[thing] {
	cfg.Key = thingKey
	q, err := queue.NewDeltaFIFO(cfg)
	require.NoError(t, err)
	return q
}

func newReal(t testing.TB, cfg queue.RealFIFOConfig[thing]) *queue.RealFIFO[thing] {
	cfg.Key = thingKey
	q, err := queue.NewRealFIFO(cfg)
	require.NoError(t, err)
	return q
}

// anyFIFO is one of the three queues, popping names and values.
type anyFIFO struct {
	fifo
	pop  func(ctx context.Context, process func(thing, bool) error) error
	done <-chan struct{}
}

func asFIFO(q *queue.FIFO[thing]) anyFIFO { return anyFIFO{q, q.Pop, q.Done()} }

func asDelta(q *queue.DeltaFIFO[thing]) anyFIFO {
	return anyFIFO{q, func(ctx context.Context, process func(thing, bool) error) error {
		return q.Pop(ctx, func(ds queue.Deltas[thing], initial bool) error { return process(ds.Newest().Object, initial) })
	}, q.Done()}
}

func asReal(q *queue.RealFIFO[thing]) anyFIFO {
	return anyFIFO{q, func(ctx context.Context, process func(thing, bool) error) error {
		return q.Pop(ctx, func(d queue.Delta[thing], initial bool) error { return process(d.Object, initial) })
	}, q.Done()}
}

// eachFIFO runs a test on each of the queues. The RealFIFO queues a delta for each
// object of a list.
func eachFIFO(t *testing.T, test func(t *testing.T, q anyFIFO)) {
	for name, build := range map[string]func() anyFIFO{
		"FIFO":      func() anyFIFO { return asFIFO(newFIFO(t)) },
		"DeltaFIFO": func() anyFIFO { return asDelta(newDelta(t, queue.DeltaFIFOConfig[thing]{Known: &known{}})) },
		"RealFIFO":  func() anyFIFO { return asReal(newReal(t, queue.RealFIFOConfig[thing]{Known: &known{}})) },
	} {
		t.Run(name, func(t *testing.T) { test(t, build()) })
	}
}

func popAll(t testing.TB, q anyFIFO) (popped []thing) {
	t.Helper()
	for q.Len() > 0 {
		require.NoError(t, q.pop(t.Context(), func(o thing, _ bool) error {
			popped = append(popped, o)
			return nil
		}))
	}
	return popped
}

func TestFIFO_IsAStoreThatPops(t *testing.T) {
	q := asFIFO(newFIFO(t))
	require.Empty(t, popAll(t, q))
	require.NoError(t, q.Delete(thing{Name: "a"}), "deleting what is not there does nothing")
	require.NoError(t, q.Add(thing{"a", "1"}))
	require.NoError(t, q.Add(thing{"a", "2"}), "an add replaces")
	require.NoError(t, q.Update(thing{"b", "1"}), "an update creates")
	require.Equal(t, 2, q.Len())
	require.Equal(t, []thing{{"a", "2"}, {"b", "1"}}, popAll(t, q))
	require.NoError(t, q.Add(thing{"a", "1"}))
	require.NoError(t, q.Delete(thing{Name: "a"}))
	require.Zero(t, q.Len())
	require.NoError(t, q.Replace([]thing{{"c", "1"}, {"a", "1"}, {"a", "2"}}, 9))
	require.NoError(t, q.Resync())
	require.Equal(t, []thing{{"c", "1"}, {"a", "2"}}, popAll(t, q), "of one key the last counts")
}

// checkProducers adds 500 things each from two producers, and checks that each
// producer's things come in its order.
func checkProducers(t *testing.T, q anyFIFO) {
	const each = 500
	var producers sync.WaitGroup
	for _, producer := range []string{"a", "b"} {
		producers.Go(func() {
			for i := range each {
				if err := q.Add(thing{producer + strconv.Itoa(i), strconv.Itoa(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	last := map[byte]int{'a': -1, 'b': -1}
	for range 2 * each {
		require.NoError(t, q.pop(t.Context(), func(o thing, _ bool) error {
			i, err := strconv.Atoi(o.Value)
			require.Equal(t, last[o.Name[0]]+1, i)
			last[o.Name[0]] = i
			return err
		}))
	}
	producers.Wait()
	require.Zero(t, q.Len())
}

func TestPop_KeepsEachProducersOrder(t *testing.T) { eachFIFO(t, checkProducers) }

func TestClose_UnblocksPop(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 10)
			for range cap(ended) {
				go func() { ended <- q.pop(t.Context(), func(thing, bool) error { return nil }) }()
			}
			synctest.Wait()
			require.Empty(t, ended)
			q.Close()
			for range cap(ended) {
				require.ErrorIs(t, <-ended, queue.ErrClosed)
			}
		})
	})
}

func TestClose_TheLastPopEndsAllThatWait(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, q.Add(thing{"a", "1"}))
			finish := make(chan struct{})
			last := make(chan error, 1)
			go func() {
				last <- q.pop(t.Context(), func(thing, bool) error { <-finish; return nil })
			}()
			synctest.Wait()
			require.NoError(t, q.Add(thing{"b", "1"}))
			ended := make(chan error, 4)
			for range cap(ended) {
				go func() { ended <- q.pop(t.Context(), func(thing, bool) error { return nil }) }()
			}
			synctest.Wait()
			q.Close()
			synctest.Wait()
			require.Empty(t, ended, "one of them will get b")
			close(finish)
			require.NoError(t, <-last)
			refused := 0
			for range cap(ended) {
				if err := <-ended; err != nil {
					require.ErrorIs(t, err, queue.ErrClosed)
					refused++
				}
			}
			require.Equal(t, 3, refused)
		})
	})
}

// A Pop that waits for its turn ends with the last entry, not with its processing.
func TestClose_TheLastPopEndsThoseThatWaitThoughItGoesOn(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		synctest.Test(t, func(t *testing.T) {
			finish := make(chan struct{})
			popped := make(chan error, 3)
			pop := func() { popped <- q.pop(t.Context(), func(thing, bool) error { <-finish; return nil }) }
			require.NoError(t, q.Add(thing{"a", "1"}))
			require.NoError(t, q.Add(thing{"b", "1"}))
			for range cap(popped) {
				go pop()
			}
			synctest.Wait()
			q.Close()
			synctest.Wait()
			finish <- struct{}{}
			require.NoError(t, <-popped)
			synctest.Wait()
			require.Len(t, popped, 1, "one has b, and there is nothing for the other")
			require.ErrorIs(t, <-popped, queue.ErrClosed)
			close(finish)
			require.NoError(t, <-popped)
		})
	})
}

func TestClose_DrainsAndRefuses(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		require.NoError(t, q.Add(thing{"a", "1"}))
		q.Close()
		q.Close()
		for _, err := range []error{
			q.Add(thing{"b", "1"}), q.Update(thing{"b", "1"}), q.Delete(thing{"a", "1"}), q.Replace(nil, 1),
		} {
			require.ErrorIs(t, err, queue.ErrClosed)
		}
		require.Equal(t, []thing{{"a", "1"}}, popAll(t, q))
		require.ErrorIs(t, q.pop(t.Context(), nil), queue.ErrClosed)
	})
}

func TestPop_EndsWithItsContext(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- q.pop(ctx, nil) }()
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.NoError(t, q.Add(thing{"a", "1"}))
			require.ErrorIs(t, q.pop(ctx, nil), context.Canceled, "a consumer whose context is done stops, however much is queued")
			require.Equal(t, 1, q.Len())
		})
	})
}

// Upstream Pop has the lock while it processes, so a slow consumer stalls the reader
// of the watch (kubernetes/kubernetes#136264).
func TestPop_ASlowConsumerHoldsUpNoProducer(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		require.NoError(t, q.Add(thing{"a", "1"}))
		require.NoError(t, q.pop(t.Context(), func(o thing, _ bool) error {
			for i := range 100 {
				require.NoError(t, q.Add(thing{"b", strconv.Itoa(i)}))
			}
			require.NoError(t, q.Replace([]thing{o, {"c", "1"}}, 2))
			require.NoError(t, q.Resync())
			return nil
		}))
		require.NotZero(t, q.Len())
	})
}

func TestPop_OneProcessesAtATime(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		var consumers sync.WaitGroup
		busy := make(chan struct{}, 1)
		for i := range 200 {
			require.NoError(t, q.Add(thing{"k" + strconv.Itoa(i), "v"}))
		}
		q.Close()
		for range 4 {
			consumers.Go(func() {
				for q.pop(context.Background(), func(thing, bool) error {
					select {
					case busy <- struct{}{}:
						<-busy
					default:
						t.Error("two at a time")
					}
					return nil
				}) == nil {
				}
			})
		}
		consumers.Wait()
		require.Zero(t, q.Len())
	})
}

// Upstream DeltaFIFO closes Done before the last of the list is processed, and
// never after a panic (kubernetes/kubernetes#129024).
func TestDone_AfterProcessingEvenIfItFails(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		require.NoError(t, q.Replace([]thing{{"a", "1"}, {"b", "1"}}, 1))
		failed := errors.New("failed")
		require.ErrorIs(t, q.pop(t.Context(), func(_ thing, initial bool) error {
			require.True(t, initial)
			return failed
		}), failed)
		var panicked *usercode.PanicError
		require.ErrorAs(t, q.pop(t.Context(), func(thing, bool) error {
			require.False(t, q.HasSynced())
			select {
			case <-q.done:
				t.Error("done while processing")
			default:
			}
			panic("poison")
		}), &panicked)
		require.Equal(t, "poison", panicked.Value)
		require.Contains(t, string(panicked.Stack), "fifo_test.go")
		<-q.done
		require.True(t, q.HasSynced())
		require.Zero(t, q.Len(), "what failed is not queued again")
	})
}

func TestKeyFunc_FailureChangesNothing(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		for _, err := range []error{
			q.Add(thing{}), q.Update(thing{}), q.Delete(thing{}), q.Replace([]thing{{"a", "1"}, {}}, 1),
		} {
			require.ErrorIs(t, err, errNameless)
			var keyErr *store.KeyFuncError[thing]
			require.ErrorAs(t, err, &keyErr)
		}
		require.Zero(t, q.Len())
		require.False(t, q.HasSynced())
	})
}

func TestFIFO_ChurnOfOneKeyDoesNotGrow(t *testing.T) {
	q := newFIFO(t)
	allocs := testing.AllocsPerRun(1000, func() {
		_ = q.Add(thing{"a", "1"})
		_ = q.Delete(thing{"a", "1"})
	})
	require.Zero(t, q.Len())
	require.LessOrEqual(t, allocs, 2.0, "a node, and no growth")
}

// All calls at once, from several goroutines.
func TestPop_UnderLoad(t *testing.T) {
	eachFIFO(t, func(t *testing.T, q anyFIFO) {
		ctx, cancel := context.WithCancel(t.Context())
		var producers, consumers sync.WaitGroup
		for p := range 3 {
			producers.Go(func() {
				for i := range 100 {
					o := thing{fmt.Sprint("k", i%7), fmt.Sprint(p, "-", i)}
					errs := []error{q.Add(o), q.Update(o), q.Delete(o), q.Resync(), q.Replace([]thing{o}, store.Revision(i))}
					if err := errors.Join(errs...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 2 {
			consumers.Go(func() {
				for q.pop(ctx, func(o thing, _ bool) error { return nil }) == nil {
				}
			})
		}
		producers.Wait()
		q.Close()
		consumers.Wait()
		cancel()
		require.Zero(t, q.Len())
		require.True(t, q.HasSynced())
	})
}

func TestConfig_ErrorsNameTheField(t *testing.T) {
	_, fifo := queue.NewFIFO[thing](nil)
	_, delta := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[thing]{})
	_, deltas := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[thing]{Key: thingKey, MaxDeltas: 1})
	_, inOrder := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{})
	_, batch := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{Key: thingKey, BatchSize: -1})
	_, limit := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{Key: thingKey, Limit: -1})
	_, heap := queue.NewHeap(queue.HeapConfig[thing]{Less: func(a, b thing) bool { return true }})
	_, less := queue.NewHeap(queue.HeapConfig[thing]{Key: thingKey})
	for want, err := range map[string]error{
		"key": fifo, "DeltaFIFOConfig.Key": delta, "DeltaFIFOConfig.MaxDeltas": deltas, "RealFIFOConfig.Key": inOrder,
		"RealFIFOConfig.BatchSize": batch, "RealFIFOConfig.Limit": limit, "HeapConfig.Key": heap, "HeapConfig.Less": less,
	} {
		require.ErrorIs(t, err, queue.ErrConfig)
		var config *queue.ConfigError
		require.ErrorAs(t, err, &config)
		require.Equal(t, want, config.Field)
	}
}

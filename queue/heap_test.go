package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

type task struct {
	Name     string
	Priority int
}

func taskName(k task) (string, error) {
	if k.Name == "" {
		return "", errNameless
	}
	return k.Name, nil
}

func newTasks(t require.TestingT, tasks ...task) *queue.Heap[task] {
	h, err := queue.NewHeap(queue.HeapConfig[task]{
		Key:  taskName,
		Less: func(a, b task) bool { return a.Priority < b.Priority },
	})
	require.NoError(t, err)
	require.NoError(t, h.BulkAdd(tasks))
	return h
}

func popTask(t require.TestingT, h *queue.Heap[task]) string {
	k, err := h.Pop(context.Background())
	require.NoError(t, err)
	return k.Name
}

func popTasks(t require.TestingT, h *queue.Heap[task]) (names []string) {
	for h.Len() > 0 {
		names = append(names, popTask(t, h))
	}
	return names
}

func TestHeap_AscendingUnderConcurrentAdds(t *testing.T) {
	h := newTasks(t)
	var adders sync.WaitGroup
	for a := range 4 {
		adders.Go(func() {
			for i := range 250 {
				if err := h.Add(task{fmt.Sprint(a, "-", i), (i*37 + a) % 500}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adders.Wait()
	last := -1
	for range 1000 {
		k, err := h.Pop(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, k.Priority, last)
		last = k.Priority
	}
	require.Zero(t, h.Len())
}

func TestHeap_AddReorders(t *testing.T) {
	h := newTasks(t, task{"a", 10}, task{"b", 1}, task{"c", 11})
	require.NoError(t, h.Add(task{"b", 13}))
	require.NoError(t, h.Add(task{"z", 5}))
	require.Equal(t, []string{"z", "a", "c", "b"}, popTasks(t, h))
}

func TestHeap_BulkAddIsSeenWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTasks(t)
		first := make(chan string)
		go func() { first <- popTask(t, h) }()
		synctest.Wait()
		require.NoError(t, h.BulkAdd([]task{{"late", 9}, {"middle", 5}, {"early", 1}}))
		require.Equal(t, "early", <-first, "the least of all, not the first that came")
		require.ErrorIs(t, h.BulkAdd([]task{{"x", 1}, {}}), errNameless)
		require.Equal(t, 2, h.Len(), "a bad key adds nothing")
	})
}

func TestHeap_CloseUnblocksPop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTasks(t)
		ended := make(chan error, 3)
		for range cap(ended) {
			go func() {
				_, err := h.Pop(t.Context())
				ended <- err
			}()
		}
		synctest.Wait()
		h.Close()
		for range cap(ended) {
			require.ErrorIs(t, <-ended, queue.ErrClosed)
		}
	})
}

func TestHeap_PopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTasks(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := h.Pop(ctx)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestHeap_AddIfNotPresentKeepsWhatIsThere(t *testing.T) {
	h := newTasks(t, task{"a", 10}, task{"b", 20})
	require.NoError(t, h.AddIfNotPresent(task{"b", 1}))
	require.NoError(t, h.AddIfNotPresent(task{"c", 15}))
	require.Equal(t, []string{"a", "c", "b"}, popTasks(t, h))
}

func TestHeap_Delete(t *testing.T) {
	h := newTasks(t, task{"a", 1}, task{"b", 2}, task{"c", 3}, task{"d", 4})
	require.NoError(t, h.Delete(task{Name: "a"}), "the head")
	require.NoError(t, h.Delete(task{Name: "d"}), "the tail")
	require.ErrorIs(t, h.Delete(task{Name: "d"}), queue.ErrNotFound)
	require.ErrorIs(t, h.Delete(task{}), store.ErrKeyFunc)
	require.Equal(t, []string{"b", "c"}, popTasks(t, h))
}

func TestHeap_UpdateMovesBothWays(t *testing.T) {
	h := newTasks(t, task{"a", 10}, task{"b", 20}, task{"c", 30})
	require.NoError(t, h.Update(task{"c", 1}))
	require.NoError(t, h.Update(task{"a", 25}))
	require.Equal(t, []string{"c", "b", "a"}, popTasks(t, h))
}

func TestHeap_Get(t *testing.T) {
	h := newTasks(t, task{"a", 10})
	got, exists, err := h.Get(task{Name: "a"})
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, task{"a", 10}, got)
	_, exists, err = h.Get(task{Name: "b"})
	require.NoError(t, err)
	require.False(t, exists)
	_, _, err = h.Get(task{})
	require.ErrorIs(t, err, store.ErrKeyFunc)
	got, exists = h.GetByKey("a")
	require.True(t, exists)
	require.Equal(t, 10, got.Priority)
	_, exists = h.GetByKey("b")
	require.False(t, exists)
}

func TestHeap_IsClosed(t *testing.T) {
	h := newTasks(t)
	require.False(t, h.IsClosed())
	h.Close()
	require.True(t, h.IsClosed())
}

func TestHeap_List(t *testing.T) {
	h := newTasks(t, task{"a", 3}, task{"b", 1}, task{"c", 2})
	require.ElementsMatch(t, []task{{"a", 3}, {"b", 1}, {"c", 2}}, h.List())
	require.Equal(t, task{"b", 1}, h.List()[0], "the least first")
	require.ElementsMatch(t, []string{"a", "b", "c"}, h.ListKeys())
	require.Equal(t, 3, h.Len())
}

func TestHeap_RefusesAfterClose(t *testing.T) {
	h := newTasks(t, task{"a", 1})
	h.Close()
	require.ErrorIs(t, h.Add(task{"b", 1}), queue.ErrClosed)
	require.ErrorIs(t, h.AddIfNotPresent(task{"b", 1}), queue.ErrClosed)
	require.ErrorIs(t, h.BulkAdd([]task{{"b", 1}}), queue.ErrClosed)
	require.Equal(t, []string{"a"}, popTasks(t, h), "what is in it can be popped")
}

func TestHeap_LessPanicIsReturnedAndNothingIsLost(t *testing.T) {
	panics := false
	h, err := queue.NewHeap(queue.HeapConfig[task]{Key: taskName, Less: func(a, b task) bool {
		if panics {
			panic("less")
		}
		return a.Priority < b.Priority
	}})
	require.NoError(t, err)
	for i := range 8 {
		require.NoError(t, h.Add(task{strconv.Itoa(i), 8 - i}))
	}
	panics = true
	var panicked *usercode.PanicError
	require.ErrorAs(t, h.Add(task{"new", 0}), &panicked)
	require.ErrorAs(t, h.Delete(task{Name: "5"}), &panicked)
	popped, err := h.Pop(t.Context())
	require.ErrorAs(t, err, &panicked)
	panics = false
	left := append(popTasks(t, h), popped.Name, "5")
	slices.Sort(left)
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "new"}, left)
}

// TestHeap_IsASortedMap does anything to a heap and to a plain map.
func TestHeap_IsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, model := newTasks(t), map[string]int{}
		draw := func(t *rapid.T) task {
			return task{rapid.StringMatching(`[a-f]`).Draw(t, "name"), rapid.IntRange(0, 9).Draw(t, "priority")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k := draw(t)
				require.NoError(t, h.Add(k))
				model[k.Name] = k.Priority
			},
			"add if not present": func(t *rapid.T) {
				k := draw(t)
				require.NoError(t, h.AddIfNotPresent(k))
				if _, exists := model[k.Name]; !exists {
					model[k.Name] = k.Priority
				}
			},
			"delete": func(t *rapid.T) {
				k := draw(t)
				if _, exists := model[k.Name]; exists {
					require.NoError(t, h.Delete(k))
				} else {
					require.ErrorIs(t, h.Delete(k), queue.ErrNotFound)
				}
				delete(model, k.Name)
			},
			"pop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				k, err := h.Pop(context.Background())
				require.NoError(t, err)
				require.Equal(t, model[k.Name], k.Priority)
				for _, other := range model {
					require.LessOrEqual(t, k.Priority, other)
				}
				delete(model, k.Name)
			},
			"": func(t *rapid.T) {
				held := map[string]int{}
				for _, k := range h.List() {
					held[k.Name] = k.Priority
				}
				require.Equal(t, model, held)
			},
		})
	})
}

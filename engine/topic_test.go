package engine_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// topicOn returns a topic of numbers that is closed when the test ends.
func topicOn(t *testing.T, opts engine.TopicOptions) *engine.Topic[int] {
	t.Helper()
	topic := engine.NewTopicWith[int](opts)
	t.Cleanup(func() { require.NoError(t, topic.Close()) })
	return topic
}

func publish(t *testing.T, topic *engine.Topic[int], from, to int) (last engine.Revision) {
	t.Helper()
	for i := from; i < to; i++ {
		var err error
		last, err = topic.Publish(t.Context(), i)
		require.NoError(t, err)
	}
	return last
}

// inbox is a handler that keeps what it is given, and says when that is enough.
type inbox struct {
	mu     sync.Mutex
	got    []int
	enough int
	full   chan struct{}
}

func newInbox(enough int) *inbox { return &inbox{enough: enough, full: make(chan struct{})} }

func (b *inbox) handle(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got = append(b.got, n); len(b.got) == b.enough {
		close(b.full)
	}
}

// messages waits until there are enough.
func (b *inbox) messages(t *testing.T) []int {
	t.Helper()
	select {
	case <-b.full:
	case <-t.Context().Done():
		require.Fail(t, "test ended before the messages came")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.got...)
}

func numbers(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func TestTopic_DeliversToAllInOnePublishedOrder(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	blocking, onPool := newInbox(1000), newInbox(1000)
	_, err := topic.Subscribe(t.Context(), blocking.handle)
	require.NoError(t, err)
	_, err = topic.SubscribeWith(t.Context(), engine.SubscribeOptions{OnPool: true}, onPool.handle)
	require.NoError(t, err)
	publish(t, topic, 0, 1000)
	require.Equal(t, numbers(0, 1000), blocking.messages(t))
	require.Equal(t, numbers(0, 1000), onPool.messages(t))
}

func TestTopic_ConcurrentPublishersHaveOneOrderForAll(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	a, b := newInbox(800), newInbox(800)
	for _, box := range []*inbox{a, b} {
		_, err := topic.Subscribe(t.Context(), box.handle)
		require.NoError(t, err)
	}
	var publishers sync.WaitGroup
	for p := range 8 {
		publishers.Go(func() {
			for i := range 100 {
				_, err := topic.Publish(t.Context(), 100*p+i)
				require.NoError(t, err)
			}
		})
	}
	publishers.Wait()
	require.Equal(t, a.messages(t), b.messages(t))
	require.ElementsMatch(t, numbers(0, 800), a.messages(t))
}

func TestTopic_ReplaysTheNewest(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{Replay: 5, FirstRevision: 1})
	publish(t, topic, 0, 10)
	early := newInbox(10)
	_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{From: 1}, early.handle)
	require.NoError(t, err)
	early.messages(t)
	late := newInbox(3)
	_, err = topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Last: 2}, late.handle)
	require.NoError(t, err)
	publish(t, topic, 10, 11)
	require.Equal(t, []int{8, 9, 10}, late.messages(t))
}

// The first list is not done when NewTopic returns. On a deterministic host it
// is never done before a call waits.
func TestTopic_ReplaysWhatWasPublishedAtOnce(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host, Replay: 1})
	publish(t, topic, 7, 8)
	for n, err := range topic.Messages(t.Context(), engine.SubscribeOptions{Last: 1}) {
		require.NoError(t, err)
		require.Equal(t, 7, n)
		break
	}
}

func TestTopic_ResumesFromASubscriptionsRevision(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	first := newInbox(3)
	sub, err := topic.Subscribe(t.Context(), first.handle)
	require.NoError(t, err)
	last := publish(t, topic, 0, 3)
	first.messages(t)
	sub.Stop()
	<-sub.Done()
	require.ErrorIs(t, sub.Err(), engine.ErrStopped)
	require.LessOrEqual(t, sub.Revision(), last)

	publish(t, topic, 3, 6)
	second := newInbox(3)
	_, err = topic.SubscribeWith(t.Context(), engine.SubscribeOptions{From: last}, second.handle)
	require.NoError(t, err)
	require.Equal(t, []int{3, 4, 5}, second.messages(t))
}

// Tailscale's and asaskevich's event buses deadlock here: their publisher waits
// for the very subscriber that publishes.
func TestTopic_HandlerMayPublishToItsOwnTopic(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	const echoes = 10_000 // more than publishers may be ahead
	all := newInbox(1 + echoes)
	_, err := topic.Subscribe(t.Context(), func(n int) {
		all.handle(n)
		if n == 0 {
			for i := 1; i <= echoes; i++ {
				if _, err := topic.Publish(t.Context(), i); err != nil {
					t.Errorf("publish from a handler: %v", err)
				}
			}
		}
	})
	require.NoError(t, err)
	publish(t, topic, 0, 1)
	require.Equal(t, numbers(0, 1+echoes), all.messages(t))
}

func TestTopic_HandlerMaySubscribeAndStopItself(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	inner := newInbox(1)
	own := make(chan *engine.Subscription, 1)
	sub, err := topic.Subscribe(t.Context(), func(n int) {
		_, err := topic.Subscribe(t.Context(), inner.handle)
		if err != nil {
			t.Errorf("subscribe from a handler: %v", err)
		}
		(<-own).Stop()
	})
	require.NoError(t, err)
	own <- sub
	publish(t, topic, 0, 1)
	<-sub.Done()
	publish(t, topic, 1, 2)
	require.Equal(t, []int{1}, inner.messages(t))
}

func TestTopic_SlowSubscriberHoldsUpNoOther(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{Buffer: 10})
	release := make(chan struct{})
	slow, quick := newInbox(20_000), newInbox(20_000)
	lagging, err := topic.Subscribe(t.Context(), func(n int) { <-release; slow.handle(n) })
	require.NoError(t, err)
	_, err = topic.Subscribe(t.Context(), quick.handle)
	require.NoError(t, err)

	publish(t, topic, 0, 20_000)
	require.Len(t, quick.messages(t), 20_000, "while the other handler blocks")
	require.Positive(t, lagging.Lag())
	close(release)
	require.Len(t, slow.messages(t), 20_000, "nothing was dropped")
}

// The oldest message counts, also while the handler has it.
func TestTopic_SubscriptionIsBehindByTheAgeOfAMessage(t *testing.T) {
	clock := clock.NewVirtual(epoch)
	topic := topicOn(t, engine.TopicOptions{Host: hostFor(t, engine.HostConfig{Clock: clock})})
	began, release := make(chan int, 2), make(chan struct{})
	s, err := topic.Subscribe(t.Context(), func(n int) { began <- n; <-release })
	require.NoError(t, err)
	require.Zero(t, s.Behind())
	publish(t, topic, 0, 1)
	require.Zero(t, <-began)
	clock.Advance(3 * time.Second)
	publish(t, topic, 1, 2)
	behind := s.Behind()
	close(release)
	require.Equal(t, 3*time.Second, behind)
	require.NoError(t, topic.Drain(t.Context()))
	require.Zero(t, s.Behind())
}

func TestTopic_SaysThatASubscriberFellOutOfTheWindow(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host, Window: engine.Window{MaxEvents: 100, ChunkSize: 10}, Buffer: 10})
	late, err := topic.Watch(t.Context(), engine.SubscribeOptions{})
	require.NoError(t, err)
	for i := range 50 {
		publish(t, topic, 10*i, 10*i+10)
		_, err := topic.Watch(t.Context(), engine.SubscribeOptions{}) // waits for the topic, so runs it
		require.NoError(t, err)
	}
	var got []int
	for ev, err := range late.Events() {
		if err != nil {
			require.ErrorIs(t, err, engine.ErrExpired)
			require.ErrorContains(t, err, fmt.Sprintf("messages after revision %d are not all kept any more", late.Revision()))
			require.ErrorContains(t, err, "subscribe with Last, or from now on", "there is nothing to list")
			break
		}
		got = append(got, ev.Object.Value)
	}
	require.Equal(t, numbers(0, 10), got, "what its buffer holds, then the reason")
}

func TestTopic_PanicEndsOneSubscriptionAlone(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{Host: hostFor(t, engine.HostConfig{})})
	cause := errors.New("cannot handle zero")
	bad, err := topic.Subscribe(t.Context(), func(int) { panic(cause) })
	require.NoError(t, err)
	good := newInbox(2)
	_, err = topic.Subscribe(t.Context(), good.handle)
	require.NoError(t, err)
	publish(t, topic, 0, 1)
	<-bad.Done()
	require.ErrorIs(t, bad.Err(), engine.ErrHandlerPanic)
	require.ErrorIs(t, bad.Err(), cause)
	publish(t, topic, 1, 2)
	require.Equal(t, []int{0, 1}, good.messages(t))
}

func TestTopic_CloseEndsAllAndLeavesNothing(t *testing.T) {
	host := hostFor(t, engine.HostConfig{})
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host})
	sub, err := topic.Subscribe(t.Context(), func(int) {})
	require.NoError(t, err)
	messages := topic.Messages(t.Context(), engine.SubscribeOptions{})
	publish(t, topic, 0, 10)
	require.Equal(t, int64(2), topic.Stats().Watches)

	require.NoError(t, topic.Close())
	require.NoError(t, topic.Close(), "a second time")
	<-sub.Done()
	require.ErrorIs(t, sub.Err(), engine.ErrEngineClosed)
	for _, err := range messages {
		require.ErrorIs(t, err, engine.ErrEngineClosed)
	}
	_, err = topic.Publish(t.Context(), 1)
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	_, err = topic.Subscribe(t.Context(), func(int) {})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.Zero(t, host.Actors())
	require.Zero(t, host.Timers())
}

func TestTopic_ThatCannotStartSaysWhyAtEveryUse(t *testing.T) {
	closed, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		opts engine.TopicOptions
		want error
		says string
	}{
		"negative replay": {engine.TopicOptions{Replay: -1}, engine.ErrConfig, "TopicOptions.Replay"},
		"negative buffer": {engine.TopicOptions{Buffer: -1}, engine.ErrConfig, "TopicOptions.Buffer"},
		"no such policy":  {engine.TopicOptions{Policy: 77}, engine.ErrConfig, "Policy(77)"},
		"no state":        {engine.TopicOptions{Policy: engine.Conflate}, engine.ErrConfig, "has no state"},
		"replay twice":    {engine.TopicOptions{Window: engine.Window{MinEvents: 3}}, engine.ErrConfig, "give Replay"},
		"bad window":      {engine.TopicOptions{Window: engine.Window{MinAge: -1}}, engine.ErrConfig, "TopicOptions.Window.MinAge"},
		"large replay":    {engine.TopicOptions{Replay: 11, Window: engine.Window{MaxEvents: 10}}, engine.ErrConfig, "TopicOptions.Replay is 11, more than Window.MaxEvents, 10"},
		"largest replay":  {engine.TopicOptions{Replay: math.MaxInt}, engine.ErrConfig, "TopicOptions.Replay"},
		"closed host":     {engine.TopicOptions{Host: closed}, engine.ErrEngineClosed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			topic := engine.NewTopicWith[int](c.opts)
			_, err := topic.Publish(t.Context(), 1)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			_, err = topic.Subscribe(t.Context(), func(int) {})
			require.ErrorIs(t, err, c.want)
			for _, err := range topic.Messages(t.Context(), engine.SubscribeOptions{}) {
				require.ErrorIs(t, err, c.want)
			}
			require.Zero(t, topic.Stats())
			require.NoError(t, topic.Close())
		})
	}
}

func TestTopic_RefusesSubscriptionsThatMeanNothing(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	_, err := topic.Subscribe(t.Context(), nil)
	require.ErrorIs(t, err, engine.ErrNilHandler)
	for name, opts := range map[string]engine.SubscribeOptions{
		"conflate":   {Policy: engine.Conflate},
		"two starts": {Last: 1, From: 1},
	} {
		_, err = topic.SubscribeWith(t.Context(), opts, func(int) {})
		require.ErrorIs(t, err, engine.ErrInvalidWatch, name)
		_, err = topic.Watch(t.Context(), opts)
		require.ErrorIs(t, err, engine.ErrInvalidWatch, name)
	}
}

// Nothing but the publisher's own calls runs on a deterministic host, so
// without being held back it would outrun the history and messages would be
// lost.
func TestTopic_PublisherCannotOutrunTheHistory(t *testing.T) {
	clock := clock.NewVirtual(epoch)
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock, Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host})
	const many = 30_000
	all := newInbox(many)
	_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{OnPool: true}, all.handle)
	require.NoError(t, err)
	for i := 0; i < many; i += 1000 {
		publish(t, topic, i, i+1000)
		clock.Advance(time.Second) // drops the old history
	}
	w, err := topic.Watch(t.Context(), engine.SubscribeOptions{})
	require.NoError(t, err)
	for err == nil {
		_, err = w.Next(t.Context())
	}
	require.ErrorIs(t, err, engine.ErrIdle, "all has run")
	require.Len(t, all.got, many)
	require.True(t, slices.IsSorted(all.got), "in order")
	require.Zero(t, topic.Stats().Relists)
}

// A handler that publishes more than the window takes at once has the topic catch up.
func TestTopic_HandlerMayPublishManyOnADeterministicHost(t *testing.T) {
	executor := actors.NewSeeded(1)
	host := hostFor(t, engine.HostConfig{Executor: executor, Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host})
	const many = 30_000
	all := newInbox(1 + many)
	_, err := topic.Subscribe(t.Context(), func(n int) {
		if all.handle(n); n == 0 {
			publish(t, topic, 1, 1+many)
		}
	})
	require.NoError(t, err)
	publish(t, topic, 0, 1)
	executor.Run()
	require.Len(t, all.got, 1+many)
	require.True(t, slices.IsSorted(all.got), "in order")
	require.Zero(t, topic.Stats().Relists)
}

// A topic whose workers are busy does not collect what its publishers publish meanwhile
// without bound: they wait for it.
func TestTopic_PublishersAreAtMostThousandsOfMessagesAhead(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host})
	w, err := topic.Watch(t.Context(), engine.SubscribeOptions{})
	require.NoError(t, err)
	const messages = 20_000
	for n := range messages {
		rev, err := topic.Publish(t.Context(), n) // runs the topic only if it waits
		require.NoError(t, err)
		require.LessOrEqual(t, rev-topic.Stats().Revision, engine.Revision(4097))
	}
	for n := 0; n < messages; {
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		for _, ev := range events {
			require.Equal(t, n, ev.Object.Value)
			n++
		}
	}
}

package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// member is a watcher of the client that answers requests for progress, unless it is silent.
type member struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
	revision  atomic.Int64
	asked     atomic.Int64
	silent    atomic.Bool
}

func newMember(revision int64) *member {
	m := &member{responses: make(chan clientv3.WatchResponse, 10)}
	m.revision.Store(revision)
	return m
}

func (m *member) RequestProgress(context.Context) error {
	m.asked.Add(1)
	if !m.silent.Load() {
		m.responses <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: m.revision.Load()}}
	}
	return nil
}

// receiver is a watch from revision 1 on that no backend has started.
type receiver struct{ *watcher }

func newReceiver(kv *cluster, period time.Duration) receiver {
	b := &Backend{life: context.Background(), client: &clientv3.Client{KV: kv}, watches: map[*watcher]struct{}{}}
	b.config = Config{ProgressEvery: period, RequestTimeout: period, Buffer: Buffer{Events: 1, Bytes: 1}}
	return receiver{b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})}
}

// receiveFrom starts to receive, and returns where the error that ends it will be.
func (w receiver) receiveFrom(m *member) chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- w.receive(&stream{ctx: context.Background(), watcher: m, responses: m.responses})
		w.finish(store.ErrClosed)
	}()
	return ended
}

// A watch goes on as long as the member answers its requests. They are frequent only while a reader waits for a
// revision that the member has not reached.
func TestReceive_RequestsProgressAndEndsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 5 * time.Second
		m, kv := newMember(5), newCluster(5)
		w := newReceiver(kv, period)
		ended := w.receiveFrom(m)

		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ended)
		require.InDelta(t, time.Hour/period, m.asked.Load(), 1)
		require.Equal(t, store.Revision(5), w.position())

		before := m.asked.Load()
		kv.revision.Store(7)
		w.chase(7)
		synctest.Wait()
		require.Equal(t, before+1, m.asked.Load(), "at once")
		time.Sleep(time.Second)
		synctest.Wait()
		require.InDelta(t, time.Second/hurry, m.asked.Load()-before, 1)
		m.revision.Store(7)
		time.Sleep(hurry)
		synctest.Wait()
		require.Equal(t, store.Revision(7), w.position())
		before = m.asked.Load()
		time.Sleep(period - hurry)
		synctest.Wait()
		require.Equal(t, before, m.asked.Load(), "no reader waits any more")

		m.silent.Store(true)
		kv.revision.Store(8)
		silent := time.Now()
		require.ErrorIs(t, <-ended, backend.ErrUnavailable)
		require.InDelta(t, 2*period, time.Since(silent), float64(period))
	})
}

// A reader may have begun to wait before a stream was broken off. The next stream requests progress soon, too.
func TestReceive_RequestsProgressForAReaderThatWaitsAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newReceiver(newCluster(7), time.Hour)
		w.chase(7)
		<-w.chased // as the stream before has
		ended := w.receiveFrom(newMember(7))
		time.Sleep(hurry)
		synctest.Wait()
		require.Equal(t, store.Revision(7), w.position())
		w.finish(store.ErrClosed)
		<-ended
	})
}

// slowMember takes long to send a request, as a process that is stopped meanwhile does. The answer can be read only after
// the watch has looked at the time, since another reader is to wait then, too.
type slowMember struct {
	*member
	sent func()
}

func (m slowMember) RequestProgress(context.Context) error {
	m.asked.Add(1)
	m.sent()
	return nil
}

// A process that was stopped for longer than an answer may take reads those that have come meanwhile.
func TestReceive_ReadsAnAnswerThatWasOverdueBeforeItCouldBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 5 * time.Second
		m := newMember(1)
		w := newReceiver(newCluster(7), period)
		slow := slowMember{member: m, sent: func() {
			if m.asked.Load() == 1 {
				time.Sleep(2 * period)
				w.chase(7)
				time.AfterFunc(hurry/2, func() { m.responses <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 7}} })
			}
		}}
		ended := make(chan error, 1)
		go func() { ended <- w.receive(&stream{ctx: context.Background(), watcher: slow, responses: m.responses}) }()
		time.Sleep(3*period + hurry)
		synctest.Wait()
		require.Empty(t, ended)
		require.Equal(t, store.Revision(7), w.position())
		w.finish(store.ErrClosed)
		<-ended
	})
}

// etcd does not answer a watch from the newest revision on, which is no reason to end it as long as there is nothing to
// tell it.
func TestReceive_GoesOnWithoutAnAnswerUntilThereIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 5 * time.Second
		m, kv := newMember(1), newCluster(1)
		m.silent.Store(true)
		ended := newReceiver(kv, period).receiveFrom(m)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ended)
		require.Positive(t, m.asked.Load())

		kv.revision.Store(2)
		time.Sleep(4 * period)
		require.ErrorIs(t, <-ended, backend.ErrUnavailable)
	})
}

// A member that answers does not serve, if the others are further and it does not come to where they are.
func TestReceive_EndsIfTheMemberHasNoNewsThoughThereIs(t *testing.T) {
	for name, happen := range map[string]func(receiver, *cluster){
		"no reader waits": func(_ receiver, kv *cluster) { kv.revision.Store(6) },
		"a reader waits":  func(w receiver, _ *cluster) { w.chase(6) },
	} {
		synctest.Test(t, func(t *testing.T) {
			const period = 5 * time.Second
			kv := newCluster(5)
			w := newReceiver(kv, period)
			ended := w.receiveFrom(newMember(5))
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Empty(t, ended, name)

			happen(w, kv)
			time.Sleep(4 * period)
			require.ErrorIs(t, <-ended, backend.ErrUnavailable, name)
		})
	}
}

// A cluster that cannot be read says nothing about a member that answers.
func TestReceive_GoesOnWithAMemberThatAnswersThoughTheClusterDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newCluster(5)
		kv.out.Store(true)
		w := newReceiver(kv, 5*time.Second)
		ended := w.receiveFrom(newMember(5))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ended)
		w.finish(store.ErrClosed)
		<-ended
	})
}

// A member that is behind for a while, and receives something in time, keeps its watches.
func TestReceive_GoesOnWithAMemberThatIsBehindAndCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 5 * time.Second
		m, kv := newMember(5), newCluster(5)
		w := newReceiver(kv, period)
		ended := w.receiveFrom(m)
		for range 100 {
			kv.revision.Add(5)
			w.chase(store.Revision(kv.revision.Load()))
			time.Sleep(period)
			m.revision.Add(5)
		}
		synctest.Wait()
		require.Empty(t, ended)
		w.finish(store.ErrClosed)
		<-ended
	})
}

package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// follower is a stock informer whose requests and notifications are recorded.
type follower struct {
	factory  dynamicinformer.DynamicSharedInformerFactory
	informer cache.SharedIndexInformer
	idle     func()

	mu sync.Mutex
	// trail is what the handler received until the informer listed again.
	trail   judge.Trail[metav1.Object]
	initial engine.List[metav1.Object]
	wrong   []string
	seen    engine.Revision
	requests
}

// requests counts a follower's requests. relists are the lists of an informer that had
// synced before, with all attempts until one succeeds counted as one.
type requests struct {
	synced, relisted bool
	resumes, relists int
	// excused are the relists that may be the client's doing alone: its watch was cut before
	// the first frame, to which the informer reacts with a list.
	excused   int
	answers   map[string]int
	perSecond map[int64]int
	// streaming: there is a watch, and its first frame has arrived.
	streaming bool
	// framed: a frame of the watch before this request had arrived.
	framed bool
	// relisting: the last request was for a list, of which nothing has arrived.
	relisting bool
}

// roundTrip sends and counts a request.
func (f *follower) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	resume := q.Get("watch") != "" && q.Get("sendInitialEvents") == ""
	f.mu.Lock()
	f.perSecond[time.Now().Unix()]++
	switch {
	case resume:
		f.resumes++
		f.relisting = false
	case q.Get("resourceVersionMatch") == "Exact": // a detector compares what was watched with a list
	case f.synced && !f.relisting:
		if f.relists++; !f.framed {
			f.excused++
		}
		f.relisted, f.relisting = true, true
	}
	f.streaming = false
	f.mu.Unlock()
	resp, err := next.RoundTrip(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.framed = false
		f.answers["none"]++
		return nil, err
	}
	f.answers[resp.Status]++
	// A refusal counts as a frame: a list after it is not excused.
	f.framed = resp.StatusCode != http.StatusOK
	if q.Get("watch") != "" && resp.StatusCode == http.StatusOK {
		resp.Body = &frames{resp.Body, f}
	}
	return resp, nil
}

// frames is the body of a watch, which notes the arrival of frames.
type frames struct {
	io.ReadCloser
	of *follower
}

func (b *frames) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if bytes.IndexByte(to[:n], '\n') >= 0 {
		b.of.framed, b.of.streaming, b.of.relisting = true, true, false
	}
	if err != nil {
		b.of.streaming = false
	}
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// follow makes an informer each of whose connections goes to a random replica.
func (x *tree) follow(n int) *follower {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return x.replicas[rand.N(len(x.replicas))].dial(ctx, network, "")
	}
	f := &follower{requests: requests{answers: map[string]int{}, perSecond: map[int64]int{}}}
	f.trail.Name = fmt.Sprintf("informer %d", n)
	f.trail.KeepObjects()
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: -1}
	f.idle = transport.CloseIdleConnections
	client, err := dynamic.NewForConfig(&rest.Config{
		Host: "http://replicas.localhost", QPS: -1,
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) { return f.roundTrip(transport, r) }),
	})
	require.NoError(x.t, err)
	f.factory = dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	f.informer = f.factory.ForResource(widgetResource).Informer()
	_, err = f.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: f.added, UpdateFunc: f.updated, DeleteFunc: f.deleted,
	})
	require.NoError(x.t, err)
	return f
}

func (f *follower) added(now any, isInInitialList bool) {
	o := object(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if isInInitialList {
		f.initial.Items = append(f.initial.Items, o)
		return
	}
	f.record(engine.Added, o)
}

func (f *follower) updated(before, now any) {
	was, o := object(before), object(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if has := f.trail.Objects()[o.Key]; !f.relisted && (has == nil || has.Revision != was.Revision) {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: told of %d after %d, it had %v", o.Key, o.Revision, was.Revision, has))
	}
	f.record(engine.Modified, o)
}

func (f *follower) deleted(last any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if unseen, is := last.(cache.DeletedFinalStateUnknown); is {
		if !f.relisted {
			f.wrong = append(f.wrong, unseen.Key+": its deletion was not seen, and nothing was listed")
		}
		return
	}
	f.record(engine.Deleted, object(last))
}

// record records a notification. The caller holds the lock.
func (f *follower) record(kind engine.EventType, o *engine.Object[metav1.Object]) {
	f.seen = max(f.seen, o.Revision)
	if !f.relisted {
		f.trail.Receive(&engine.Event[metav1.Object]{Type: kind, Revision: o.Revision, Object: o})
	}
}

// object returns the key and the revision of a notification's object.
func object(of any) *engine.Object[metav1.Object] {
	m := of.(metav1.Object)
	rev, _ := strconv.ParseUint(m.GetResourceVersion(), 10, 64) // an unparsable one makes the judge fail
	return &engine.Object[metav1.Object]{Key: m.GetNamespace() + "/" + m.GetName(), Revision: engine.Revision(rev)}
}

// sync waits until the informer has the state at a revision, and begins the trail with
// it.
func (f *follower) sync(t *testing.T, ctx context.Context, objects int, at engine.Revision) {
	require.True(t, cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced))
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.initial.Items) == objects && f.streaming
	}, patience, 5*time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.Revision, f.synced, f.seen = at, true, at
	f.trail.List(&f.initial)
}

func (f *follower) isStreaming() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streaming
}

// has reports whether the informer's objects are those of a state, at the same revisions.
func (f *follower) has(want map[string]engine.Revision) bool {
	all := f.informer.GetStore().List()
	for _, item := range all {
		if o := object(item); want[o.Key] != o.Revision {
			return false
		}
	}
	return len(all) == len(want)
}

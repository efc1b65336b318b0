package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/caughtup"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// SeqAnnotation is the annotation of a served object that has the Seq of its write.
const SeqAnnotation = "seq"

// pod is an [Object] in the form of a Kubernetes kind.
type pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName,omitempty"`
	} `json:"spec"`
}

func newPod(o Object) pod {
	p := pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: o.Name, Labels: map[string]string{AppLabel: o.App},
		Annotations: map[string]string{SeqAnnotation: strconv.FormatInt(o.Seq, 10)},
	}}
	p.Spec.NodeName = o.Node
	return p
}

// unlimited allows one user to have all watches of a workload.
var unlimited = serve.Limits{Watches: 1 << 20, WatchesPerUser: 1 << 20}

// kindServer is a [serve.Server] over one kind.
type kindServer struct {
	*serve.Server
	pods   *registry.Store[pod]
	origin io.Closer // the client of the server that a replica follows; nil for no replica
}

func podConfig() registry.Config[pod] {
	return registry.Config[pod]{
		Kind:   registry.Kind{Group: "bench.watchmill", Version: "v1", Kind: "Pod"},
		Fields: map[string]func(*pod) string{NodeField: func(p *pod) string { return p.Spec.NodeName }},
	}
}

func openServer(ctx context.Context) (Server, error) { return openKind(ctx, podConfig(), nil) }

// openReplica opens a replica of the server at an address.
func openReplica(ctx context.Context, addr string) (Server, error) {
	cfg := podConfig()
	format, err := registry.FormatOf(cfg)
	if err != nil {
		return nil, err
	}
	origin, err := remote.New(format, remote.Config{URL: "http://" + addr})
	if err != nil {
		return nil, err
	}
	cfg.Engine.Backend = origin
	return openKind(ctx, cfg, origin)
}

func openKind(ctx context.Context, cfg registry.Config[pod], origin io.Closer) (Server, error) {
	pods, server, err := openResource(ctx, cfg)
	if err != nil {
		if origin != nil {
			err = errors.Join(err, origin.Close())
		}
		return nil, err
	}
	return kindServer{Server: server, pods: pods, origin: origin}, nil
}

// openResource opens the objects of a kind, and a server of them.
func openResource[T any, P registry.Ptr[T]](ctx context.Context, cfg registry.Config[T]) (*registry.Store[T], *serve.Server, error) {
	objects, err := registry.New[T, P](cfg)
	if err != nil {
		return nil, nil, err
	}
	server, err := serve.New(serve.Config{Resources: []serve.Provider{objects}, Limits: unlimited, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = objects.Engine().WaitReady(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, objects.Close())
	}
	return objects, server, nil
}

// Write stores the object directly, without the validation of the kind, as the writes to
// the rival's storage are.
func (s kindServer) Write(ctx context.Context, o Object) (uint64, error) {
	stored, err := s.pods.Engine().Put(ctx, newPod(o))
	if err != nil {
		return 0, err
	}
	return uint64(stored.Revision), nil
}

func (s kindServer) WaitFor(ctx context.Context, rev uint64) error {
	return caughtup.Wait(ctx, s.pods.Engine(), engine.Revision(rev))
}

func (s kindServer) Handler() http.Handler { return s.Server }
func (s kindServer) Path() string          { return podPath }

func (s kindServer) Close() error {
	err := s.pods.Close()
	if s.origin != nil {
		err = errors.Join(err, s.origin.Close())
	}
	return err
}

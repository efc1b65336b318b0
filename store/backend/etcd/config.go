package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd/internal/avoid"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

// Policy is what a watch does about values that cannot be decoded.
type Policy int

// The policies.
const (
	// Fail ends a watch that meets such a value with a [*backend.UndecodableError].
	Fail Policy = iota
	// Keep lets a watch continue: the event's object has its key and revision and the
	// zero value.
	Keep
)

// Buffer bounds the events that a watch has received and its consumer has not read. When
// it is full the watch closes its stream, and opens another one where it was when half of
// the buffer has been read. Meanwhile etcd keeps the history. The response that fills the
// buffer, of up to 1,000 revisions, may exceed it.
type Buffer struct {
	// Events is the most events; zero means [DefaultBufferEvents].
	Events int
	// Bytes is the most bytes of their encoded values; zero means
	// [DefaultBufferBytes].
	Bytes int
}

// The defaults of Config.
const (
	// DefaultBufferEvents is how many events a watch holds for its consumer.
	DefaultBufferEvents = 10_000
	// DefaultBufferBytes is how many bytes of values these may have.
	DefaultBufferBytes = 16 << 20
	// DefaultProgressEvery is how long a watch waits for a response before it requests
	// progress.
	DefaultProgressEvery = 5 * time.Second
	// DefaultRequestTimeout bounds a call whose context has no deadline.
	DefaultRequestTimeout = 10 * time.Second
)

// The keep-alive of connections, with which the client notices a dead one.
const (
	keepAliveEvery   = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	dialTimeout      = 5 * time.Second
)

// Config configures a backend. Prefix, Schema, and one of Client and Endpoints are
// required.
type Config struct {
	// Prefix is the beginning of all keys, before a slash, such as "/shop/pods". All
	// processes that share the objects give the same, and nothing else in the
	// cluster has keys under it.
	Prefix string
	// Schema is that of the objects.
	Schema store.Schema

	// Client is the client to use. The backend does not close it. It should have
	// DialKeepAliveTime set. It does not pass over members that do not answer: see "Several
	// members" in the package's documentation. A watch whose context ends before etcd has
	// accepted it can leave an idle stream, which the client has until it is closed.
	Client *clientv3.Client
	// Endpoints are the members to connect to without Client, such as "10.0.0.1:2379".
	Endpoints []string
	// TLS is for connections to Endpoints; nil means no TLS.
	TLS *tls.Config
	// Username and Password authenticate a connection to Endpoints, if the cluster
	// requires that. Give both or none.
	Username, Password string

	// Codec encodes the values; nil means [codec.JSON].
	Codec codec.Codec
	// Sealer encrypts the encoded values; nil leaves them readable. They are bound
	// to Prefix and key.
	Sealer codec.Sealer
	// OnUndecodable is what a watch does about a value that cannot be decoded.
	OnUndecodable Policy

	// NoHistory starts engines at the newest state. Without it they first read all the
	// history that etcd has, some 7,000 events a second, so that watches can resume from
	// earlier revisions: see "Compaction" in the package's documentation.
	NoHistory bool
	// Buffer bounds what each watch holds.
	Buffer Buffer
	// ProgressEvery is how long a watch waits for a response before it requests
	// progress; zero means [DefaultProgressEvery]. Without anything new for as long again,
	// and up to a second, it ends with [backend.ErrUnavailable] if the cluster has come
	// further, or if neither that is known nor the request was answered.
	ProgressEvery time.Duration
	// RequestTimeout bounds a call whose context has no deadline; zero means
	// [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// LeasePool is how many objects that expire at about the same time share a
	// lease; up to one, each has its own. Sharing saves a request for most writes
	// with a TTL. Objects that share one are deleted at one revision, and live up to
	// 5 % or a minute longer.
	LeasePool int
	// OnError, if any, is called with errors that fail no call: keys under Prefix that
	// cannot be objects', a database that is nearly full. It is called from any
	// goroutine and must not block. A panic in it is contained, and passed to it once.
	OnError func(error)
}

func (c *Config) validate() error {
	invalid := func(option, problem string) error {
		return &usercode.ConfigError{Field: option, Problem: problem}
	}
	if err := validatePrefix(c.Prefix); err != nil {
		return err
	}
	switch s := c.Schema; {
	case s.New == nil || s.Clone == nil || s.Pointer == nil || s.Describe == nil:
		return invalid("Schema", "has functions missing; give that of the type, such as engine.Config.Schema returns")
	case c.Client == nil && len(c.Endpoints) == 0:
		return invalid("Endpoints", "is empty, and so is Client; give the addresses of the members")
	case c.Client != nil && (len(c.Endpoints) > 0 || c.TLS != nil || c.Username != "" || c.Password != ""):
		return invalid("Client", "is given together with Endpoints, TLS, Username or Password, which it has of its own; give one or the other")
	case (c.Username == "") != (c.Password == ""):
		return invalid("Username", "and Password are not given together, and etcd's client logs in with both alone; give both or none")
	case c.OnUndecodable != Fail && c.OnUndecodable != Keep:
		return invalid("OnUndecodable", fmt.Sprintf("is %d; give Fail or Keep", c.OnUndecodable))
	case c.Buffer.Events < 0 || c.Buffer.Bytes < 0:
		return invalid("Buffer", "is negative; zero means the default")
	case c.ProgressEvery < 0:
		return invalid("ProgressEvery", "is negative; zero means the default")
	case c.RequestTimeout < 0:
		return invalid("RequestTimeout", "is negative; zero means the default")
	case c.LeasePool < 0:
		return invalid("LeasePool", "is negative; zero means a lease for each object")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Codec == nil {
		c.Codec = codec.JSON{}
	}
	if c.Buffer.Events == 0 {
		c.Buffer.Events = DefaultBufferEvents
	}
	if c.Buffer.Bytes == 0 {
		c.Buffer.Bytes = DefaultBufferBytes
	}
	if c.ProgressEvery == 0 {
		c.ProgressEvery = DefaultProgressEvery
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	return c
}

// dial returns a client of the endpoints. It waits for no connection unless it logs in, which
// ctx bounds. The client avoids members that are late.
func (c *Config) dial(ctx context.Context, late *avoid.Avoidance) (*clientv3.Client, error) {
	life, end := context.WithCancelCause(context.Background())
	unlink := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	client, err := clientv3.New(clientv3.Config{
		Context: life, Endpoints: c.Endpoints, TLS: c.TLS, Username: c.Username, Password: c.Password,
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAliveEvery, DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions: append(late.DialOptions(), grpc.WithChainUnaryInterceptor(noteMember)),
		Logger:      zap.NewNop(),
	})
	if !unlink() {
		if err == nil {
			_ = client.Close()
		}
		return nil, context.Cause(ctx)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w: logging in as %s: %w", backend.ErrUnavailable, c.Username, err)
	case err != nil:
		return nil, readError(ctx, "connecting", err)
	}
	return client, nil
}

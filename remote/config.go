package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/internal/redact"
	"github.com/watchmill/watchmill/usercode"
)

// Config names a server and selects the objects to follow there. Only URL is required.
type Config struct {
	// URL is the server's address, http or https, with the path below which it serves the
	// protocol, if there is one.
	URL string
	// Namespace restricts reads and watches to one namespace; "" is all. A kind without
	// namespaces must leave it out.
	Namespace string
	// Labels and Fields are selectors, in Kubernetes' syntax, that restrict reads and
	// watches to a part of the objects; "" is all. Writes are not restricted, but those
	// that read the object first, as updates and deletions through a replica do, find no
	// other objects.
	Labels, Fields string
	// TLS is how the backend's own clients speak to a server of https: the RootCAs of a private authority, and the
	// Certificates by which the server knows them, or a GetClientCertificate for one that is renewed: it is called for
	// each connection, and a 401 makes later requests open another. It is copied. Nil means the system's authorities,
	// and no certificate. A Client has its own.
	TLS *tls.Config
	// Token is sent as a bearer token; "" is none.
	Token string
	// TokenSource returns the bearer token of a request, in place of Token: for one that
	// expires. It is called concurrently, for each request, with the request's context. A request
	// whose token it fails to return is not sent; that is a [backend.ErrUnavailable].
	TokenSource func(ctx context.Context) (string, error)
	// Client sends the requests. It must have no Timeout, which would end watches. Nil
	// means two clients of the backend's own, so that watches share no connection with
	// other requests. They give up connections that are dead within 45 s; a Client of yours
	// does so if its transport has an [http.HTTP2Config].SendPingTimeout and, for HTTP/1.1, its
	// dialer a [net.KeepAliveConfig]. They close a connection after 25 s without a request, before servers and
	// proxies do so: over HTTP/1.1 a write that meets that is a [backend.UncertainError]. If
	// [http.DefaultTransport] is not an [http.Transport], they use that.
	Client *http.Client
	// RequestTimeout bounds every request. Of a watch it bounds the time until its answer begins, and of a
	// list that time, and then the time in which each 64 KiB of it arrive. Zero means [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// WatchTimeout is how long each connection of a watch is requested to last, plus a
	// random part of up to half of it, so that not all watches reconnect at once. The sum
	// is cut to whole seconds. It is a second or more; more than a year counts as one, and zero
	// means [DefaultWatchTimeout].
	WatchTimeout time.Duration
	// KeepManagedFields keeps metadata.managedFields, which make up a large part of many
	// objects. Only clients that apply objects need them. Without it the server is asked
	// to leave them out.
	KeepManagedFields bool
	// NoHistory starts replicas at the newest state. Without it they start with the history
	// in the server's window, so that clients of this or another replica resume after a
	// restart without listing again, and by default an engine's window keeps events by
	// number and bytes instead of age. Servers other than those of this module do not report
	// the oldest revision that they keep; replicas of them start at the newest state. A
	// server that refuses to list past states with another status than 410 delays that
	// start by the pauses between several attempts.
	NoHistory bool
	// BufferBytes is how many bytes of events a watch reads ahead. While the list before it still arrives, they are
	// MaxListBytes, if that is more. A single event may have BufferBytes, or [MaxFrameBytes] if that is more. Zero
	// means [DefaultBufferBytes].
	BufferBytes int
	// MaxListBytes is how many bytes the answer to one list may have, without compression: a
	// page, or all objects, in however many pages, for lists without a limit. A larger one fails with a
	// [*SizeError], so that a broken server does not take all memory. Other answers may
	// have as many bytes as a single event of a watch. Zero means [DefaultMaxListBytes].
	MaxListBytes int
	// MinPause and MaxPause bound the pauses before a watch reconnects. A pause doubles
	// with each attempt, and is shortened at random by up to half; a server that sends a
	// longer Retry-After is given that time, up to ten times MaxPause. Zero means [DefaultMinPause] and
	// [DefaultMaxPause], or MinPause if that is more. The lists with which a replica begins, and starts
	// over, are spaced by its engine.Config.Backoff instead.
	MinPause, MaxPause time.Duration
	// OnError gets the error after which a watch reconnects. It is called from the
	// goroutines of several watches at once, and must not block. A panic in it is ignored.
	// Optional.
	OnError func(error)
}

// Defaults of [Config]. A watch lasts at least as long as one of client-go's Reflector,
// and the pauses are those of the Reflector's backoff.
const (
	DefaultRequestTimeout = 30 * time.Second
	DefaultWatchTimeout   = 450 * time.Second
	DefaultBufferBytes    = 4 << 20
	DefaultMaxListBytes   = 1 << 30
	DefaultMinPause       = 800 * time.Millisecond
	DefaultMaxPause       = 30 * time.Second
)

// MaxFrameBytes is the largest event in bytes, unless [Config].BufferBytes is larger. It is ten
// times the largest request that etcd takes by default.
const MaxFrameBytes = 16 << 20

// validate returns a [*usercode.ConfigError] for the first field that is wrong.
func (c *Config) validate() error {
	if err := c.validateServer(); err != nil {
		return err
	}
	if err := c.validateDurations(); err != nil {
		return err
	}
	switch {
	case c.BufferBytes < 0:
		return wrongField("BufferBytes", fmt.Sprintf("is %d, which is negative; zero is %d bytes", c.BufferBytes, DefaultBufferBytes))
	case c.MaxListBytes < 0:
		return wrongField("MaxListBytes", fmt.Sprintf("is %d, which is negative; zero is %d bytes", c.MaxListBytes, DefaultMaxListBytes))
	}
	return nil
}

// validateServer validates the fields that say where the server is, what to select there, and how to
// send requests.
func (c *Config) validateServer() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(c.URL, "?#") || u.User != nil {
		return wrongField("URL", fmt.Sprintf("is %q; give one like https://10.0.0.1:8443, credentials by Token or Client", redact.URL(c.URL)))
	}
	if _, err := labels.Parse(c.Labels); err != nil {
		return wrongField("Labels", "does not parse: "+err.Error())
	}
	if _, err := fields.ParseSelector(c.Fields); err != nil {
		return wrongField("Fields", "does not parse: "+err.Error())
	}
	if err := c.validateTLS(u.Scheme); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(c.Namespace, "/%") || c.Namespace == "." || c.Namespace == "..":
		return wrongField("Namespace", fmt.Sprintf("is %q; give a name without slashes and percent signs, other than . and ..", c.Namespace))
	case c.Token != "" && c.TokenSource != nil:
		return wrongField("TokenSource", "is set, and so is Token; give one of them")
	case strings.ContainsFunc(c.Token, unicode.IsControl):
		return wrongField("Token", noToken)
	case c.Client != nil && c.Client.Timeout != 0:
		return wrongField("Client", fmt.Sprintf("has a Timeout of %v, which would end watches; leave it zero and use RequestTimeout", c.Client.Timeout))
	}
	return nil
}

// validateTLS returns an error if TLS would not be used.
func (c *Config) validateTLS(scheme string) error {
	if c.TLS == nil {
		return nil
	}
	_, known := http.DefaultTransport.(*http.Transport)
	switch {
	case c.Client != nil:
		return wrongField("TLS", "is set, and so is Client; give it to the Client's transport instead")
	case scheme != "https":
		return wrongField("TLS", "is set, but URL is of http, over which all is sent readably; give a URL of https")
	case !known:
		return wrongField("TLS", fmt.Sprintf("is set, but the clients would use http.DefaultTransport, which is a %T; give a Client", http.DefaultTransport))
	}
	return nil
}

// validateDurations validates the durations and pauses, those that were left out by their defaults.
func (c *Config) validateDurations() error {
	full := c.withDefaults()
	for _, d := range []struct {
		name            string
		value, fallback time.Duration
	}{
		{"RequestTimeout", c.RequestTimeout, DefaultRequestTimeout}, {"WatchTimeout", c.WatchTimeout, DefaultWatchTimeout},
		{"MinPause", c.MinPause, DefaultMinPause}, {"MaxPause", c.MaxPause, c.defaultMaxPause()},
	} {
		if d.value < 0 {
			return wrongField(d.name, fmt.Sprintf("is %v, which is negative; zero is %v", d.value, d.fallback))
		}
	}
	switch {
	case full.WatchTimeout < time.Second:
		return wrongField("WatchTimeout", fmt.Sprintf("is %v; give a second or more", full.WatchTimeout))
	case full.MaxPause < full.MinPause:
		return wrongField("MaxPause", fmt.Sprintf("is %v, which is less than MinPause; give %v or more", full.MaxPause, full.MinPause))
	}
	return nil
}

// withDefaults returns c with defaults for the fields that are zero, and the URL without a slash at its end.
func (c Config) withDefaults() Config {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.WatchTimeout = cmp.Or(c.WatchTimeout, DefaultWatchTimeout)
	c.MaxPause = cmp.Or(c.MaxPause, c.defaultMaxPause())
	c.MinPause = cmp.Or(c.MinPause, DefaultMinPause)
	c.BufferBytes = cmp.Or(c.BufferBytes, DefaultBufferBytes)
	c.MaxListBytes = cmp.Or(c.MaxListBytes, DefaultMaxListBytes)
	c.URL = strings.TrimSuffix(c.URL, "/")
	return c
}

// defaultMaxPause returns the default of MaxPause, which is not less than MinPause.
func (c *Config) defaultMaxPause() time.Duration { return max(DefaultMaxPause, c.MinPause) }

func wrongField(name, problem string) error {
	return &usercode.ConfigError{Field: name, Problem: problem}
}

// noToken is the problem of a token that no header can have.
const noToken = "has a control character, such as the line break at the end of a file; leave that out"

// maxObject is how many bytes an event, or an answer other than a list, may have.
func (c *Config) maxObject() int { return max(MaxFrameBytes, c.BufferBytes) }

// patience returns how long a watch waits for a Retry-After: at most ten times MaxPause, since a
// wrong one must not stop it for hours.
func (c *Config) patience(seconds int32) time.Duration {
	requested := time.Duration(seconds) * time.Second
	if requested/10 > c.MaxPause {
		return 10 * c.MaxPause
	}
	return requested
}

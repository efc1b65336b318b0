package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/usercode"
)

// Config says which server, and what to follow there. Only URL is required.
type Config struct {
	// URL is where the server is, http or https, with the path below which it serves
	// the protocol, if there is one.
	URL string
	// Namespace restricts reads and watches to one namespace; "" is all.
	Namespace string
	// Labels and Fields are selectors, for a replica of a part.
	Labels, Fields string
	// Token is sent as a bearer token; "" is none. Client certificates are Client's.
	Token string
	// Client sends the requests. It must have no Timeout, which would end watches. Nil
	// means one of the backend's own, with a connection for watches and another for
	// the rest.
	Client *http.Client
	// RequestTimeout bounds every request but watches. Zero means [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// WatchTimeout is how long a watch asks to last, and up to half as long again, so
	// that not all come back at once. In whole seconds. Zero means
	// [DefaultWatchTimeout].
	WatchTimeout time.Duration
	// KeepManagedFields keeps metadata.managedFields, which are a large part of many
	// objects and of use only to those that apply them.
	KeepManagedFields bool
	// NoHistory starts replicas at the newest state. Otherwise they start with the
	// history that the server's window has, so that clients of a replica before its
	// restart resume at it, or at another, without listing again. Servers that are not of
	// this module do not tell what they have, and replicas of them start at the newest.
	NoHistory bool
	// Buffer is how many bytes of events a watch reads ahead. An event may be as large,
	// if that is more than [MaxFrame]. Zero means [DefaultBuffer].
	Buffer int
	// MinPause and MaxPause bound the pauses between two attempts to open a watch,
	// which double. Zero means [DefaultMinPause] and [DefaultMaxPause].
	MinPause, MaxPause time.Duration
	// OnError is told why a watch was opened again. It must not block. Optional.
	OnError func(error)
}

// Defaults of [Config]. Watches last as long as those of client-go's Reflector at
// least, and pauses are those of its backoff.
const (
	DefaultRequestTimeout = 30 * time.Second
	DefaultWatchTimeout   = 450 * time.Second
	DefaultBuffer         = 4 << 20
	DefaultMinPause       = 800 * time.Millisecond
	DefaultMaxPause       = 30 * time.Second
)

// MaxFrame is how many bytes an event may have, if [Config].Buffer is not more: ten
// times what etcd lets an object have.
const MaxFrame = 16 << 20

// complete returns c with defaults, or an error that names the first field that is
// wrong.
func (c Config) complete() (Config, error) {
	wrong := func(field, problem string) (Config, error) {
		return c, &usercode.ConfigError{Field: "remote.Config." + field, Problem: problem}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return wrong("URL", fmt.Sprintf("is %q; give one like https://10.0.0.1:8443, credentials by Token or Client", redacted(u, c.URL)))
	}
	if _, err := labels.Parse(c.Labels); err != nil {
		return wrong("Labels", "does not parse: "+err.Error())
	}
	if _, err := fields.ParseSelector(c.Fields); err != nil {
		return wrong("Fields", "does not parse: "+err.Error())
	}
	if strings.ContainsAny(c.Namespace, "/%") {
		return wrong("Namespace", fmt.Sprintf("is %q; give a name without slash or percent sign", c.Namespace))
	}
	if c.Client != nil && c.Client.Timeout != 0 {
		return wrong("Client", fmt.Sprintf("has a Timeout of %v, which would end watches; leave it zero and use RequestTimeout", c.Client.Timeout))
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"RequestTimeout", &c.RequestTimeout, DefaultRequestTimeout}, {"WatchTimeout", &c.WatchTimeout, DefaultWatchTimeout},
		{"MinPause", &c.MinPause, DefaultMinPause}, {"MaxPause", &c.MaxPause, max(DefaultMaxPause, c.MinPause)},
	} {
		if *d.value < 0 {
			return wrong(d.name, fmt.Sprintf("is %v, which is negative; zero is %v", *d.value, d.fallback))
		}
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	switch {
	case c.WatchTimeout < time.Second:
		return wrong("WatchTimeout", fmt.Sprintf("is %v; give a second or more", c.WatchTimeout))
	case c.MaxPause < c.MinPause:
		return wrong("MaxPause", fmt.Sprintf("is %v, less than MinPause, %v", c.MaxPause, c.MinPause))
	case c.Buffer < 0:
		return wrong("Buffer", fmt.Sprintf("is %d, which is negative; zero is %d bytes", c.Buffer, DefaultBuffer))
	case c.Buffer == 0:
		c.Buffer = DefaultBuffer
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	return c, nil
}

// redacted returns a URL without its password, for error messages.
func redacted(u *url.URL, text string) string {
	if u == nil || u.User == nil {
		return text
	}
	return u.Redacted()
}

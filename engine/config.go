package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultFreshnessTimeout is how long a read waits for the cache to reach the
// revision that it needs: the API server's 3 s.
const DefaultFreshnessTimeout = 3 * time.Second

// ErrConfig: the configuration is invalid. Every error about a setting, of any package of
// this module, matches it, and so do those about the options of a write. Errors about the
// options of a watch, a list or a read are [ErrInvalidWatch], [ErrInvalidList] or
// [ErrInvalidRead].
var ErrConfig = usercode.ErrConfig

// ConfigError names the wrong Field, and the Problem with it and what to write instead.
type ConfigError = usercode.ConfigError

// Fields are the fields for field selectors and [Config].Index, each
// with a function that returns its value, as in
//
//	engine.Fields[Pod]{"spec.nodeName": func(p Pod) string { return p.Node }}
type Fields[T any] map[string]func(T) string

// Config configures an engine. Nearly every engine needs a Key; the zero values of the
// other fields are useful.
type Config[T any] struct {
	// Key returns the object's key: path segments separated by slashes, such as
	// "namespace/name".
	//
	// Nil is for values without a key, such as plain strings and bytes. Then PutWith takes
	// the key as [PutOptions].Key, and Update, Modify and Delete as always. Create, Put,
	// Replace and Emit have no parameter for it, and fail with [ErrConfig].
	Key func(T) string
	// Labels returns the labels that label selectors match on: a map that the value has.
	// Without it and LabelValues such selectors are refused.
	Labels func(T) labels.Set
	// LabelValues are the labels of types without such a map, in place of Labels. Like
	// Fields they are evaluated once per write. They take 32 bytes an object and 16 a label,
	// and an update that changes none of them allocates nothing for them. A map that Labels
	// made for each write would take 300 bytes, and as much time as a third of a write to
	// storage in memory.
	LabelValues LabelValues[T]
	// Fields are what field selectors match on. They are evaluated once per
	// write. A selector that names another field is refused.
	//
	// A value that stays the same is kept from the first state that had it. So clone one that
	// is a part of a large string, such as a request's body.
	Fields Fields[T]
	// Size estimates the bytes that a value holds, for Window.MaxBytes and Stats; nil
	// means that they are estimated from the values themselves, as [store.SizeOf] does.
	Size func(T) int
	// Equal reports whether two values are the same, so that an update that
	// changes nothing writes nothing; nil means reflect.DeepEqual.
	Equal func(a, b T) bool
	// SetRevision returns a copy of the value that carries the revision of its object,
	// for types such as those of Kubernetes. It must not change its argument, must be quick,
	// and must not call the engine, since storage in memory calls it under its lock. A panic
	// fails the write, and nothing is stored; only etcd calls it after the write, which then
	// fails with a [backend.ErrUncertain].
	//
	// It is called once for each write, at its commit, for each object of a deletion, and,
	// where storage encodes values, when one is decoded. Gets, lists and events share the
	// result. Labels, Fields, Size and the key are taken from the value before that.
	//
	// Equal compares values with their revisions. It should ignore them if the program makes
	// new values rather than changing copies of stored ones.
	SetRevision func(T, Revision) T

	// Carry returns a copy of the value that carries something of the context it is
	// written with, such as the trace context that consumers continue. Every event of
	// the write then has it, and storage keeps it. It must not change its argument. A panic
	// fails the write. Nil costs nothing.
	//
	// It is called for each Create, Put, Update, Replace, Modify and Emit that writes something,
	// even if only the object's expiry, before the labels and fields are taken from the value.
	// Create takes the key after it, too; for the others it must not change the key
	// ([ErrInvalidKey]). An update that is tried again calls it again. Equal should ignore what
	// it sets, since otherwise an update that changes nothing else is a write.
	//
	// Writes through [WriterOf] do not call it. Neither do deletions, which have no value of
	// their own: the event of a deletion has what the last write carried. To pass on the
	// context of a deletion, first write that the object is to go, and then delete it at the
	// revision of that write.
	Carry func(ctx context.Context, value T) T

	// Index names some of Fields, and IndexLabels labels. Lists look up objects by them
	// without scanning all. An index takes some 50 bytes for each object that has a value,
	// and time of those writes that change it. Watches need no index: the dispatcher indexes
	// their selectors. Over a given Backend in memory or in a file, name the same indexes
	// there, too ([memory.Options].Indexes): the cache then shares its state.
	Index       []string
	IndexLabels []string

	// Window bounds the history that watches can resume from.
	//
	// Over durable storage, which keeps its history ([backend.Traits].KeepsHistory), events do not
	// expire by age unless MinAge or MinEvents is given: the newest [DefaultDurableEvents] stay, or
	// as many as MaxEvents says, as far as MaxBytes allows. Those from before the engine was started
	// are among them.
	//
	// Without a cache the history is the backend's. Then Window bounds that of the engine's
	// own backend, as [memory.Options].Retain does, and is refused together with a given one.
	Window Window
	// NoCache turns the cache off: all reads and watches then go to the backend. A watch that
	// names no revision to start after asks the backend for one, and watches from there. If the
	// backend discards that revision in between, the watch asks again, up to five times in all.
	NoCache bool

	// Backend is the storage; nil means storage in memory of the engine's own. A
	// given backend is not closed with the engine. Close it after the engine: if it is
	// closed before, OnError is told, [Readiness].Ended is true, cached reads go on, and each
	// watch ends, when it has delivered what there is, with an [ErrNotReady] that is Final.
	// So informers that follow the engine end, too.
	Backend backend.Backend
	// FirstRevision is the revision of the engine's own empty storage. A given
	// Backend has its own, and both are refused. Zero derives it from the clock, so that a revision saved
	// from an earlier engine is older than all of this one's, and a watch from it is refused with
	// [ErrExpired], unless the clock was set back, or shows both engines the same time: that of
	// Windows moves every 16 ms or more often, one in a bubble of testing/synctest only in a wait. A
	// [Checkpoint] is refused always. Tests that print revisions set it to 1.
	FirstRevision Revision
	// Host is where the engine's actors run; nil means a host of its own. A given
	// host is not closed with the engine.
	Host *Host
	// Metrics gets the measurements of this engine; nil means its host's
	// [HostConfig].Metrics.
	Metrics Metrics
	// Name is what errors and logs call the engine, and the prefix of its actors' names;
	// empty means the type's name.
	Name string

	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// one minute.
	BookmarkPeriod time.Duration
	// FreshnessTimeout is how long a read, or the start of a watch, waits until the cache
	// is ready or has reached a revision; zero means [DefaultFreshnessTimeout].
	FreshnessTimeout time.Duration
	// VerifyEvery is the time between two comparisons of the cache with the
	// backend, see [Engine.Verify], or nine times as long as the first took, if that
	// is more; up to half of it is added at random. Zero means never, or five minutes
	// if other processes write to the storage. OnError gets the differences.
	VerifyEvery time.Duration
	// Backoff spaces the attempts to reconnect to a backend that fails. By default the pauses
	// grow from 0.8 s to a minute, and are short again only after a watch that lasted for two
	// minutes. So an engine over a backend that fails several times in that time may be a minute behind.
	// It is refused with NoCache, where nothing reconnects.
	Backoff Backoff
	// ListWhenBehind has the cache list instead of resuming when it reconnects to a backend
	// that has moved on by more than that many revisions. It is for storage that repeats
	// changes more slowly than it lists the state, such as etcd. Watches then get the
	// difference, without what was emitted in between, and cannot resume in between.
	// Revisions count the whole storage, for etcd those of all kinds in the cluster. Zero
	// means never.
	ListWhenBehind Revision
	// DetectMutations is for tests: it finds changes of shared objects, and reports them to
	// OnError as [*MutationError]s, when the object is next superseded, deleted or read,
	// with some later call, or at Close. It prints every value at least twice.
	//
	// It reads values concurrently with their users. So it does not suit values with locks
	// or caches, and a concurrent change is a data race that -race finds.
	DetectMutations bool
	// OnError is called with every error that no call returns, such as those of a
	// backend that is retried. It must not block.
	OnError func(error)
	// OnEnd is called once for each watch that has ended, including those of [Engine.Source].
	// The watch's handler may still be in its last call. A client of Source that comes back has another watch under the same name,
	// and so may have many ends: an informer comes back again and again while [Engine.Drain]
	// waits for others. OnEnd runs in the engine's own turns and must not block.
	OnEnd func(WatchEnd)
}

// The functions of a Config are not methods of it: each of those costs every program
// that has a Config several copies, for the value, its pointer and its shape.

// validateFunctions returns a [*ConfigError] for the first of the functions, by name, that is wrong.
func validateFunctions[T any](c *Config[T]) error {
	var fields, values usercode.FirstError
	for name, get := range c.Fields {
		fields.Add(name, validateField(name, get == nil))
	}
	for name, get := range c.LabelValues {
		values.Add(name, validateLabel(name, get == nil))
	}
	if err := fields.Err(); err != nil {
		return err
	}
	if err := values.Err(); err != nil {
		return err
	}
	if c.Labels != nil {
		if len(c.LabelValues) > 0 {
			return &ConfigError{Field: "LabelValues", Problem: "is set together with Labels; give one of them"}
		}
		return nil
	}
	for _, name := range c.IndexLabels {
		if c.LabelValues[name] == nil {
			return &ConfigError{Field: "IndexLabels", Problem: fmt.Sprintf("names %q, but Labels is nil and LabelValues has no such label; give a function that returns it", name)}
		}
	}
	return nil
}

// validateField returns a [*ConfigError] if a field's name is invalid or its function is nil.
func validateField(name string, isNil bool) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name || strings.ContainsAny(name, "=!,"):
		return &ConfigError{Field: "Fields", Problem: fmt.Sprintf("has the name %q; give one that a selector can contain, such as spec.nodeName", name)}
	case isNil:
		return &ConfigError{Field: "Fields", Problem: fmt.Sprintf("has no function for %q; give one that returns the field's value", name)}
	}
	return nil
}

// validateLabel returns a [*ConfigError] if a label's name is invalid or its function is nil.
func validateLabel(name string, isNil bool) error {
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return &ConfigError{Field: "LabelValues", Problem: fmt.Sprintf("has the name %q, which no selector can contain: %s", name, problems[0])}
	}
	if isNil {
		return &ConfigError{Field: "LabelValues", Problem: fmt.Sprintf("has no function for %q; give one that returns the label's value", name)}
	}
	return nil
}

// settings is the untyped [Config], with the type's functions in the
// schema.
type settings struct {
	schema             store.Schema
	keyless            bool // keys are given together with the values
	noLabels           bool // objects never have labels
	index, indexLabels []string
	indexes            []store.Attribute // of index and indexLabels
	window             Window
	retained           Window // by storage of the engine's own; zero means what the cache needs
	noCache            bool
	backend            backend.Backend
	firstRevision      Revision
	host               *Host
	metrics            Metrics
	name               string
	bookmarkPeriod     time.Duration
	freshnessTimeout   time.Duration
	verifyEvery        time.Duration
	backoff            reflector.Backoff
	listWhenBehind     Revision
	detectMutations    bool
	onError            func(error)
	onEnd              func(WatchEnd)
	// endReason is as in [watcher.Feed].Reason.
	endReason func(error) error
	// carry changes a draft that is about to be written with a context; nil if there is
	// nothing to do.
	carry func(context.Context, *store.Object)
}

// carryOf returns Config.Carry without its type.
func carryOf[T any](carry func(context.Context, T) T) func(context.Context, *store.Object) {
	if carry == nil {
		return nil
	}
	return func(ctx context.Context, draft *store.Object) {
		whole := typed[T](draft)
		whole.Value = carry(ctx, whole.Value)
	}
}

// settingsOf returns c without its type.
func settingsOf[T any](c *Config[T]) settings {
	s := settings{
		schema: c.Schema(), keyless: c.Key == nil, noLabels: c.Labels == nil && len(c.LabelValues) == 0,
		index: c.Index, indexLabels: c.IndexLabels,
		window: c.Window, noCache: c.NoCache,
		backend: c.Backend, firstRevision: c.FirstRevision, host: c.Host, metrics: c.Metrics, name: c.Name,
		carry:          carryOf(c.Carry),
		bookmarkPeriod: c.BookmarkPeriod, freshnessTimeout: c.FreshnessTimeout, verifyEvery: c.VerifyEvery,
		backoff: c.Backoff, listWhenBehind: c.ListWhenBehind, detectMutations: c.DetectMutations, onError: c.OnError, onEnd: c.OnEnd,
	}
	if s.name == "" {
		s.name = typeName[T]()
	}
	return s
}

// validate returns a [*ConfigError] for the first setting that is wrong.
func (s *settings) validate() error {
	switch {
	case s.bookmarkPeriod < 0:
		return &ConfigError{Field: "BookmarkPeriod", Problem: "is negative; zero means one minute"}
	case s.freshnessTimeout < 0:
		return &ConfigError{Field: "FreshnessTimeout", Problem: "is negative; zero means 3 s"}
	case s.verifyEvery < 0:
		return &ConfigError{Field: "VerifyEvery", Problem: "is negative; zero means never, or five minutes if other processes write to the storage"}
	case s.verifyEvery > 0 && !s.cached():
		return &ConfigError{Field: "VerifyEvery", Problem: "is set, but NoCache turns the cache off: there is nothing to compare"}
	case s.window != (Window{}) && !s.cached() && s.backend != nil:
		return &ConfigError{Field: "Window", Problem: "is set, but NoCache turns the cache off: the history is that of Backend, where its bounds are set"}
	case s.listWhenBehind > 0 && !s.cached():
		return &ConfigError{Field: "ListWhenBehind", Problem: "is set, but NoCache turns the cache off: nothing is listed"}
	case s.backoff != (Backoff{}) && !s.cached():
		return &ConfigError{Field: "Backoff", Problem: "is set, but NoCache turns the cache off: nothing reconnects"}
	case s.firstRevision != 0 && s.backend != nil:
		return &ConfigError{Field: "FirstRevision", Problem: "is set, but Backend has a revision of its own; give it there, as memory.Options and bolt.Config have it"}
	}
	if err := ValidateHost("Host", s.host); err != nil {
		return err
	}
	if err := s.validateBackend(); err != nil {
		return err
	}
	if err := configError(s.window.Validate("Window")); err != nil {
		return err
	}
	return s.resolveIndexes()
}

// validateBackend returns a [*ConfigError] if the backend has values of another type, which the
// engine would misread.
func (s *settings) validateBackend() error {
	if s.backend == nil {
		return nil
	}
	if has := typeIn(s.backend); has != nil && has != s.schema.Type {
		return &ConfigError{Field: "Backend", Problem: fmt.Sprintf("holds objects of %v, not of %v; give one that was made with the Schema of this Config", has, s.schema.Type)}
	}
	return nil
}

// configError returns an error of the storage about a setting, with the name that the
// setting has in the engine's configuration.
func configError(err error) error {
	if wrong := (*usercode.ConfigError)(nil); errors.As(err, &wrong) {
		return &ConfigError{Field: strings.TrimPrefix(wrong.Field, "Options."), Problem: wrong.Problem}
	}
	return err
}

// resolveIndexes works out the attributes to index.
func (s *settings) resolveIndexes() error {
	for _, name := range s.index {
		a, err := s.schema.Fields.Attribute(name)
		if err != nil {
			return fmt.Errorf("%w: %w", &ConfigError{Field: "Index", Problem: "names what Fields does not declare"}, err)
		}
		s.indexes = append(s.indexes, a)
	}
	for _, name := range s.indexLabels {
		if name == "" {
			return &ConfigError{Field: "IndexLabels", Problem: "has an empty name; give the label's name"}
		}
		s.indexes = append(s.indexes, store.LabelAttribute(name))
	}
	for i, a := range s.indexes {
		if !slices.Contains(s.indexes[:i], a) {
			continue
		}
		field := "Index"
		if a.Kind == store.Label {
			field = "IndexLabels"
		}
		return &ConfigError{Field: field, Problem: fmt.Sprintf("names %q twice; name it once", a.Name)}
	}
	return nil
}

// cached reports whether there is a cache.
func (s *settings) cached() bool { return !s.noCache }

// withDefaults returns s with defaults for what was left out.
func (s settings) withDefaults() settings {
	s.bookmarkPeriod = cmp.Or(s.bookmarkPeriod, dispatcher.DefaultBookmarkPeriod)
	s.freshnessTimeout = cmp.Or(s.freshnessTimeout, DefaultFreshnessTimeout)
	if s.onError == nil {
		s.onError = func(error) {}
	}
	return s
}

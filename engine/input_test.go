package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// wanted is what an error must be: of that kind, and with words that name
// the thing and the way out.
type wanted struct {
	is    error
	words []string
}

func (c wanted) require(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, c.is)
	for _, word := range c.words {
		require.ErrorContains(t, err, word)
	}
}

// The keys that no object can have, and what is said about them.
var badKeys = map[string]struct{ key, reason string }{
	"empty":          {"", "every object needs a key"},
	"slash":          {"/", "without leading, trailing or double slashes"},
	"leading slash":  {"/a", "without leading, trailing or double slashes"},
	"double slash":   {"a//b", "without leading, trailing or double slashes"},
	"trailing slash": {"a/", "without leading, trailing or double slashes"},
	"dot":            {".", "not allowed"},
	"dot dot":        {"a/../b", "not allowed"},
	"too long":       {strings.Repeat("k", store.MaxKeyLength+1), "longer than 1024 bytes"},
	"NUL":            {"a\x00b", "UTF-8 without NUL"},
	"bad UTF-8":      {"a\xffb", "UTF-8 without NUL"},
}

func TestInput_Keys(t *testing.T) {
	f := newFixture(t, nil)
	ctx, e := t.Context(), f.engine
	for name, bad := range badKeys {
		t.Run(name, func(t *testing.T) {
			value := thing{Key: bad.key}
			_, create := e.Create(ctx, value)
			_, put := e.Put(ctx, value)
			_, emit := e.Emit(ctx, value)
			_, update := e.Update(ctx, bad.key, func(o thing) (thing, error) { return o, nil }, engine.UpdateOptions{})
			_, remove := e.Delete(ctx, bad.key, engine.DeleteOptions{})
			_, get := e.Get(ctx, bad.key, engine.GetOptions{})
			_, cached := e.Get(ctx, bad.key, engine.GetOptions{Read: engine.Cached()})
			for verb, err := range map[string]error{
				"create": create, "put": put, "emit": emit, "update": update, "delete": remove, "get": get, "cached get": cached,
			} {
				wanted{engine.ErrInvalidKey, []string{"key", bad.reason}}.require(t, err)
				var detail *engine.KeyError
				require.ErrorAs(t, err, &detail, verb)
			}
			if bad.key == "" {
				return // means every object, in a selection
			}
			_, list := e.List(ctx, engine.ListOptions{Key: bad.key})
			_, watch := e.Watch(ctx, engine.WatchOptions{Key: bad.key})
			_, handle := e.Handle(ctx, engine.WatchOptions{Key: bad.key}, func(engine.Event[thing]) {})
			for _, err := range []error{list, watch, handle} {
				wanted{engine.ErrInvalidSelector, []string{"Key", bad.reason, "write it like"}}.require(t, err)
			}
			if bad.key == "a/" || bad.key == "/" {
				return // a prefix may end with a slash
			}
			_, list = e.List(ctx, engine.ListOptions{Prefix: bad.key})
			_, watch = e.Watch(ctx, engine.WatchOptions{Prefix: bad.key})
			for _, err := range []error{list, watch} {
				wanted{engine.ErrInvalidSelector, []string{"Prefix", bad.reason}}.require(t, err)
			}
		})
	}
	require.Equal(t, engine.Revision(1), e.Revision(), "nothing was written")
}

func TestInput_Selectors(t *testing.T) {
	f := newFixture(t, nil)
	for name, test := range map[string]struct {
		opts  engine.WatchOptions
		words []string
	}{
		"labels":               {engine.WatchOptions{Labels: "app=web,,"}, []string{"Labels", "app=web,,", "write it like"}},
		"label operator":       {engine.WatchOptions{Labels: "app~web"}, []string{"Labels", "app~web"}},
		"label values":         {engine.WatchOptions{Labels: "app in web"}, []string{"Labels", "app in web"}},
		"fields":               {engine.WatchOptions{Fields: "node"}, []string{"Fields", "node", "write it like"}},
		"field with spaces":    {engine.WatchOptions{Fields: "node=n1, zone=z"}, []string{"Fields", "spaces"}},
		"field without a name": {engine.WatchOptions{Fields: "=n1"}, []string{"Fields", "no field name"}},
		"prefix of a slash":    {engine.WatchOptions{Prefix: "/"}, []string{"Prefix", `"/"`, "for all keys write"}},
		"key and prefix":       {engine.WatchOptions{Key: "a", Prefix: "b"}, []string{"Prefix", "leave one of them empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, watch := f.engine.Watch(t.Context(), test.opts)
			_, list := f.engine.List(t.Context(), engine.ListOptions{
				Key: test.opts.Key, Prefix: test.opts.Prefix, Labels: test.opts.Labels, Fields: test.opts.Fields,
			})
			for _, err := range []error{watch, list} {
				wanted{engine.ErrInvalidSelector, test.words}.require(t, err)
				var detail *engine.SelectorError
				require.ErrorAs(t, err, &detail)
			}
		})
	}
}

func TestInput_WatchOptions(t *testing.T) {
	f := newFixture(t, nil)
	for name, test := range map[string]struct {
		opts  engine.WatchOptions
		words []string
	}{
		"Last":            {engine.WatchOptions{Last: -1}, []string{"Last", "negative", "give"}},
		"Last from":       {engine.WatchOptions{Last: 1, From: 1}, []string{"Last", "From", "choose one"}},
		"Last with state": {engine.WatchOptions{Last: 1, InitialState: true}, []string{"Last", "InitialState", "choose one"}},
		"Buffer":          {engine.WatchOptions{Buffer: -1}, []string{"Buffer", "negative", "give"}},
		"Progress":        {engine.WatchOptions{Progress: true}, []string{"Progress", "Bookmarks", "give both"}},
		"Timeout":         {engine.WatchOptions{Timeout: -1}, []string{"Timeout", "negative", "give"}},
		"Policy":          {engine.WatchOptions{Policy: 77}, []string{"Policy", "77", "Park, Terminate or Conflate"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.engine.Watch(t.Context(), test.opts)
			wanted{engine.ErrInvalidWatch, test.words}.require(t, err)
			_, err = f.engine.Handle(t.Context(), test.opts, func(engine.Event[thing]) {})
			wanted{engine.ErrInvalidWatch, test.words}.require(t, err)
		})
	}
}

func TestInput_ListOptions(t *testing.T) {
	f := newFixture(t, nil)
	for range 3 {
		f.put("a")
	}
	f.put("b")
	page, err := f.engine.List(t.Context(), engine.ListOptions{Limit: 1})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		opts engine.ListOptions
		wanted
	}{
		"Limit":               {engine.ListOptions{Limit: -1}, wanted{engine.ErrInvalidList, []string{"Limit", "negative", "zero lists everything"}}},
		"Exactly(0)":          {engine.ListOptions{Read: engine.Exactly(0)}, wanted{engine.ErrInvalidList, []string{"Exactly(0)", "give a revision"}}},
		"Continue and Read":   {engine.ListOptions{Continue: page.Continue, Read: engine.Cached()}, wanted{engine.ErrInvalidList, []string{"Read", "Continue", "leave it out"}}},
		"unknown token":       {engine.ListOptions{Continue: "!!"}, wanted{engine.ErrInvalidContinue, []string{"continue token", "list again"}}},
		"token cut short":     {engine.ListOptions{Continue: page.Continue[:len(page.Continue)-3]}, wanted{engine.ErrInvalidContinue, []string{"continue token", "list again"}}},
		"token of another":    {engine.ListOptions{Continue: page.Continue, Prefix: "b"}, wanted{engine.ErrInvalidContinue, []string{"continue token"}}},
		"token of the future": {engine.ListOptions{Continue: backend.Token{Revision: 1000, Start: "a"}.Encode()}, wanted{engine.ErrInvalidContinue, []string{"has not happened", "list again"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.engine.List(t.Context(), test.opts)
			test.require(t, err)
		})
	}
}

func TestInput_Revisions(t *testing.T) {
	var executor *advancing
	f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
		executor = &advancing{Seeded: host.Executor.(singleStepping).Seeded, clock: host.Clock.(*clock.Virtual)}
		host.Executor = executor
		c.Window.MaxEvents, c.Window.ChunkSize = 4, 1
	})
	for range 20 {
		f.put("a")
	}
	require.NoError(t, f.storage.Compact(t.Context(), 15))
	ctx, e := t.Context(), f.engine
	old := wanted{engine.ErrExpired, []string{"too old revision: 2", "list again"}}
	future := wanted{engine.ErrFuture, []string{"too large revision: 1000", "current: 21"}}
	for name, test := range map[string]struct {
		call func() error
		wanted
	}{
		"watch from the past": {func() error { _, err := e.Watch(ctx, engine.WatchOptions{From: 2}); return err }, old},
		"list the past":       {func() error { _, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(2)}); return err }, old},
		"get from the past":   {func() error { _, err := e.Get(ctx, "a", engine.GetOptions{Read: engine.Exactly(2)}); return err }, old},
		"state of the future": {func() error { _, err := e.Watch(ctx, engine.WatchOptions{From: 1000, InitialState: true}); return err }, future},
		"list the future":     {func() error { _, err := e.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(1000)}); return err }, future},
		"list exactly later":  {func() error { _, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(1000)}); return err }, future},
		"get from the future": {func() error {
			_, err := e.Get(ctx, "a", engine.GetOptions{Read: engine.NotOlderThan(1000)})
			return err
		}, future},
		"get exactly from later": {func() error { _, err := e.Get(ctx, "a", engine.GetOptions{Read: engine.Exactly(1000)}); return err }, future},
		"wait for the future":    {func() error { return e.WaitForRevision(ctx, 1000) }, future},
		"get exactly nothing": {
			func() error { _, err := e.Get(ctx, "a", engine.GetOptions{Read: engine.Exactly(0)}); return err },
			wanted{engine.ErrInvalidRead, []string{"Exactly(0)", "give a revision"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			executor.seconds = 10
			err := test.call()
			test.require(t, err)
			var expired *engine.ExpiredError
			var future *engine.FutureError
			require.Equal(t, errors.Is(err, engine.ErrExpired), errors.As(err, &expired))
			require.Equal(t, errors.Is(err, engine.ErrFuture), errors.As(err, &future))
			executor.seconds = 0
		})
	}
	w, err := e.Watch(ctx, engine.WatchOptions{From: 1000})
	require.NoError(t, err, "a watch may start in the future")
	f.requireReads(w)
}

func TestInput_Functions(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a")
	ctx, e := t.Context(), f.engine
	_, err := e.Handle(ctx, engine.WatchOptions{}, nil)
	wanted{engine.ErrNilHandler, []string{"handler is nil", "pass a function"}}.require(t, err)
	_, err = e.Update(ctx, "a", nil, engine.UpdateOptions{})
	wanted{usercode.ErrConfig, []string{"change", "nil", "give a function"}}.require(t, err)
	_, err = e.Update(ctx, "a", func(thing) (thing, error) { return thing{Key: "b"}, nil }, engine.UpdateOptions{})
	wanted{engine.ErrInvalidKey, []string{`"a"`, `"b"`, "cannot rename"}}.require(t, err)
	_, err = e.Update(ctx, "a", func(thing) (thing, error) { panic("no") }, engine.UpdateOptions{})
	wanted{usercode.ErrPanic, []string{`"a"`, "no"}}.require(t, err)
	_, err = e.DeleteIf(ctx, "a", func(*engine.Object[thing]) error { panic("no") }, engine.DeleteOptions{})
	wanted{usercode.ErrPanic, []string{`"a"`, "no"}}.require(t, err)
	_, err = engine.Resume(ctx, e, engine.WatchOptions{From: 2}, nil, nil) // even if it would not be called
	wanted{usercode.ErrConfig, []string{"reset", "nil", "give a function"}}.require(t, err)
	_, err = e.CreateWith(ctx, thing{Key: "t"}, engine.CreateOptions{TTL: -1})
	wanted{usercode.ErrConfig, []string{": CreateOptions.TTL is -1ns", "negative"}}.require(t, err)
	_, err = e.PutWith(ctx, thing{Key: "t"}, engine.PutOptions{TTL: -1})
	wanted{usercode.ErrConfig, []string{"PutOptions.TTL", "negative"}}.require(t, err)
	_, err = e.PutWith(ctx, thing{Key: "t"}, engine.PutOptions{TTL: 1, Permanent: true})
	wanted{usercode.ErrConfig, []string{"PutOptions.Permanent", "give one of them"}}.require(t, err)
	_, err = e.PutWith(ctx, thing{Key: "t"}, engine.PutOptions{Key: "u"})
	wanted{engine.ErrInvalidKey, []string{`"t"`, `"u"`, "leave PutOptions.Key out"}}.require(t, err)
	_, err = e.ByIndex(ctx, "zone", "z1")
	wanted{engine.ErrUnknownIndex, []string{"zone", "add it to Config.Index or Config.IndexLabels"}}.require(t, err)
	_, err = e.Update(ctx, "a", func(o thing) (thing, error) { return o, nil }, engine.UpdateOptions{Preconditions: engine.Preconditions{UID: 77}})
	wanted{engine.ErrPrecondition, []string{`"a"`, "UID", "77"}}.require(t, err)
	o, err := e.Get(ctx, "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, engine.Revision(2), o.Revision, "it is as it was")
}

func TestInput_EmitToStorageThatCannotSaysWhatToGive(t *testing.T) {
	history, err := memory.New(cfg().Schema(), memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, history.Close()) }()
	c := cfgOver(nameless{history})
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Emit(t.Context(), pod{Name: "a"})
	wanted{engine.ErrUnsupported, []string{"Config.Backend", "give"}}.require(t, err)
}

// Functions of the configuration that panic fail the call, not the engine.
func TestInput_ConfigFunctionsThatPanic(t *testing.T) {
	for name, spoil := range map[string]func(*engine.Config[pod]){
		"Config.Key": func(c *engine.Config[pod]) { c.Key = func(p pod) string { boom(p); return p.Name } },
		"Labels":     func(c *engine.Config[pod]) { l := c.Labels; c.Labels = func(p pod) labels.Set { boom(p); return l(p) } },
		"Size":       func(c *engine.Config[pod]) { c.Size = func(p pod) int { boom(p); return 1 } },
		"Equal":      func(c *engine.Config[pod]) { c.Equal = func(_, p pod) bool { boom(p); return false } },
	} {
		t.Run(name, func(t *testing.T) {
			c := cfg()
			spoil(&c)
			e, err := engine.New(c)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			w, err := e.Watch(t.Context(), engine.WatchOptions{})
			require.NoError(t, err)
			_, err = e.Create(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
			_, err = e.Put(t.Context(), pod{Name: "a", N: boomAt})
			wanted{usercode.ErrPanic, []string{name, "boom"}}.require(t, err)
			_, err = e.Put(t.Context(), pod{Name: "a", N: 2})
			require.NoError(t, err)
			for want := engine.Revision(2); want <= 3; {
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				for _, ev := range events {
					require.Equal(t, want, ev.Revision)
					want++
				}
			}
		})
	}
}

const boomAt = math.MaxInt

func boom(p pod) {
	if p.N == boomAt {
		panic("boom")
	}
}

func TestInput_Config(t *testing.T) {
	index := func(names ...string) func(*engine.Config[thing]) {
		return func(c *engine.Config[thing]) { c.Index = names }
	}
	for name, test := range map[string]struct {
		spoil func(*engine.Config[thing])
		words []string
	}{
		"Index":       {func(c *engine.Config[thing]) { c.Index, c.Fields = []string{"node"}, nil }, []string{"Index", `"node"`, "no fields are declared"}},
		"IndexLabels": {func(c *engine.Config[thing]) { c.IndexLabels, c.Labels = []string{"app"}, nil }, []string{"IndexLabels", `"app"`, "Labels is nil", "give a function"}},
		"LabelValues": {func(c *engine.Config[thing]) {
			c.LabelValues = engine.LabelValues[thing]{"app": func(o thing) string { return o.App }}
		}, []string{"LabelValues", "together with Labels", "give one"}},
		"LabelValues name": {func(c *engine.Config[thing]) {
			c.Labels, c.LabelValues = nil, engine.LabelValues[thing]{"a=b": func(o thing) string { return o.App }}
		}, []string{"LabelValues", `"a=b"`, "no selector"}},
		"LabelValues nil": {func(c *engine.Config[thing]) {
			c.Labels, c.LabelValues = nil, engine.LabelValues[thing]{"app": nil}
		}, []string{"LabelValues", "no function", `"app"`}},
		"Window alone": {func(c *engine.Config[thing]) {
			c.Window.MaxEvents, c.NoCache, c.Backend = 9, true, faulty.New(nil, faulty.Options{})
		}, []string{"Window", "NoCache", "history", "Backend"}},
		"Index name":        {index(""), []string{"Index", `field ""`, "declared are node"}},
		"Index twice":       {index("node", "node"), []string{"Index", "node", "twice"}},
		"IndexLabels twice": {func(c *engine.Config[thing]) { c.IndexLabels = []string{"app", "app"} }, []string{"IndexLabels", "app", "twice"}},
		"IndexLabels name":  {func(c *engine.Config[thing]) { c.IndexLabels = []string{""} }, []string{"IndexLabels", "empty name", "give"}},
		"Fields no name":    {func(c *engine.Config[thing]) { c.Fields[""] = c.Fields["node"] }, []string{"Fields", `name ""`, "spec.nodeName"}},
		"Fields space":      {func(c *engine.Config[thing]) { c.Fields["node "] = c.Fields["node"] }, []string{"Fields", `name "node "`, "spec.nodeName"}},
		"Fields operator":   {func(c *engine.Config[thing]) { c.Fields["node!"] = c.Fields["node"] }, []string{"Fields", `name "node!"`, "spec.nodeName"}},
		"Fields nil":        {func(c *engine.Config[thing]) { c.Fields["node"] = nil }, []string{"Fields", "no function", `"node"`}},
		"BookmarkPeriod":    {func(c *engine.Config[thing]) { c.BookmarkPeriod = -1 }, []string{"BookmarkPeriod", "negative", "zero means"}},
		"FreshnessTimeout":  {func(c *engine.Config[thing]) { c.FreshnessTimeout = -1 }, []string{"FreshnessTimeout", "negative", "zero means"}},
		"VerifyEvery":       {func(c *engine.Config[thing]) { c.VerifyEvery = -1 }, []string{"VerifyEvery", "negative", "zero means"}},
		"VerifyEvery alone": {func(c *engine.Config[thing]) { c.VerifyEvery, c.NoCache = time.Minute, true }, []string{"VerifyEvery", "NoCache"}},
		"ListWhenBehind":    {func(c *engine.Config[thing]) { c.ListWhenBehind, c.NoCache = 1, true }, []string{"ListWhenBehind", "NoCache"}},
		"Backoff alone":     {func(c *engine.Config[thing]) { c.Backoff.Max, c.NoCache = time.Hour, true }, []string{"Backoff", "NoCache"}},
		"FirstRevision":     {func(c *engine.Config[thing]) { c.FirstRevision, c.Backend = 1, faulty.New(nil, faulty.Options{}) }, []string{"FirstRevision", "Backend", "memory.Options"}},
		"MinAge":            {func(c *engine.Config[thing]) { c.Window.MinAge = -1 }, []string{"MinAge", "negative", "zero means"}},
		"MinEvents":         {func(c *engine.Config[thing]) { c.Window.MinEvents = -1 }, []string{"MinEvents", "negative", "zero means"}},
		"MaxEvents":         {func(c *engine.Config[thing]) { c.Window.MaxEvents = -1 }, []string{"MaxEvents", "negative", "zero means"}},
		"MaxBytes":          {func(c *engine.Config[thing]) { c.Window.MaxBytes = -1 }, []string{"MaxBytes", "negative", "zero means"}},
		"ChunkSize":         {func(c *engine.Config[thing]) { c.Window.ChunkSize = -1 }, []string{"ChunkSize", "negative", "zero means"}},
		"MinEvents > Max":   {func(c *engine.Config[thing]) { c.Window.MinEvents, c.Window.MaxEvents = 9, 5 }, []string{"MinEvents", "MaxEvents", "raise"}},
		"Backoff.Initial":   {func(c *engine.Config[thing]) { c.Backoff.Initial = -1 }, []string{"Backoff.Initial", "negative"}},
		"Backoff.Max":       {func(c *engine.Config[thing]) { c.Backoff = reflector.Backoff{Initial: 2, Max: 1} }, []string{"Backoff.Max", "less than Initial"}},
		"Backoff.Factor":    {func(c *engine.Config[thing]) { c.Backoff.Factor = 0.5 }, []string{"Backoff.Factor", "less than 1"}},
		"Backoff.Jitter":    {func(c *engine.Config[thing]) { c.Backoff.Jitter = 11 }, []string{"Backoff.Jitter", "between 0 and 10"}},
		"HealthyAfter":      {func(c *engine.Config[thing]) { c.Backoff.HealthyAfter = -1 }, []string{"HealthyAfter", "negative"}},
	} {
		t.Run(name, func(t *testing.T) {
			host, err := engine.NewHost(engine.HostConfig{})
			require.NoError(t, err)
			defer func() { require.NoError(t, host.Close()) }()
			c := thingConfig()
			c.Host = host
			test.spoil(&c)
			_, err = engine.New(c)
			wanted{engine.ErrConfig, test.words}.require(t, err)
			require.Zero(t, host.Actors(), "nothing is left of the attempt")
			require.Zero(t, host.Timers())
		})
	}
}

// Of several errors the same one is told every time.
func TestInput_TellsTheFirstWrongNameOfAConfig(t *testing.T) {
	for range 50 {
		c := thingConfig()
		c.Fields = engine.Fields[thing]{"b": nil, "a": nil, "c": nil}
		_, err := engine.New(c)
		require.ErrorContains(t, err, `no function for "a"`)
		c = thingConfig()
		c.Labels, c.LabelValues = nil, engine.LabelValues[thing]{"b": nil, "a": nil, "c": nil}
		_, err = engine.New(c)
		require.ErrorContains(t, err, `no function for "a"`)
	}
}

func TestInput_FieldOfTheBackoffIsThatOfTheConfig(t *testing.T) {
	c := cfg()
	c.Backoff.Factor = 0.5
	_, err := engine.New(c)
	require.EqualError(t, err, "invalid configuration: Backoff.Factor is less than 1; give 1 or more, or zero for the default")
}

func TestInput_HostConfig(t *testing.T) {
	_, err := engine.NewHost(engine.HostConfig{CloseTimeout: -1})
	wanted{engine.ErrConfig, []string{"CloseTimeout", "negative", "zero means"}}.require(t, err)
	_, err = engine.NewHost(engine.HostConfig{Workers: -1})
	wanted{engine.ErrConfig, []string{"Workers", "negative", "use 0"}}.require(t, err)
	_, err = engine.NewHost(engine.HostConfig{Workers: math.MaxInt})
	wanted{engine.ErrConfig, []string{"Workers", "at most 10000"}}.require(t, err)
	_, err = engine.NewHost(engine.HostConfig{Workers: 1, Executor: actors.NewSeeded(1)})
	wanted{engine.ErrConfig, []string{"Workers", "Executor", "set one"}}.require(t, err)
}

func TestInput_AZeroHostIsRefused(t *testing.T) {
	c := thingConfig()
	c.Host = &engine.Host{}
	_, err := engine.New(c)
	wanted{engine.ErrConfig, []string{"Host", "NewHost", "or none"}}.require(t, err)
	topic := engine.NewTopicWith[thing](engine.TopicOptions{Host: &engine.Host{}})
	_, err = topic.Publish(t.Context(), thing{})
	wanted{engine.ErrConfig, []string{"TopicOptions.Host", "NewHost", "or none"}}.require(t, err)
	require.NoError(t, topic.Close())
}

func TestInput_PolicyText(t *testing.T) {
	var p engine.Policy
	err := p.UnmarshalText([]byte("drop"))
	require.ErrorContains(t, err, `"drop"`)
	require.ErrorContains(t, err, "park, terminate, conflate")
	require.Equal(t, engine.Park, p)
}

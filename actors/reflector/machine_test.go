package reflector

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// TestMachine_Scenarios plays the stories in testdata/machine against the machine. Each command
// is an input; what it prints is what the machine wants done, and where it then
// stands.
//
//	reflector [prefix=P] [pages=N] [contiguous] [warm] [behind=N] [resume-attempts=N] [jitter=F] [random=F]
//	begin [REASON]
//	page rev=N [continue=TOKEN] [remaining=N] [of=STORAGE] (KEY@REV)...   |  page err=NAME
//	watch [of=STORAGE]                                                    |  watch err=NAME
//	batch after=N through=N (EVENT KEY@REV)...                            |  batch err=NAME
//	wake | room | relist REASON | sink open|full|gone | pass DURATION | stats
//
// Objects and events are given one per line as input.
func TestMachine_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		s := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.play(t, d) })
	})
}

// story is a machine with a sink that answers as it is told to, and a clock.
type story struct {
	m       *machine
	verdict actors.Verdict
	now     time.Time
	out     strings.Builder
}

func newStory() *story {
	s := &story{now: time.Unix(0, 0)}
	s.m = &machine{rules: storyRules()}
	return s
}

func storyRules() rules {
	return rules{
		pageSize: 2, resumeAttempts: DefaultResumeAttempts, permanent: Permanent,
		backoff: Backoff{Jitter: NoJitter}.withDefaults(), random: func() float64 { return 0 },
	}
}

// storyErrors are the errors that scenarios name.
var storyErrors = map[string]error{
	"expired":     &store.ExpiredError{Requested: 1, Oldest: 9},
	"future":      &store.FutureError{Requested: 9, Current: 1},
	"token":       store.ErrInvalidContinue,
	"closed":      store.ErrClosed,
	"unsupported": store.ErrUnsupported,
	"refused":     errors.New("connection refused"),
	"broken":      errors.New("connection reset"),
	"busy":        errors.New("too many requests"),
	"corrupt":     errors.New("cannot decode"),
}

func (s *story) play(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	if d.Cmd == "reflector" {
		s.configure(t, d)
		return "ok"
	}
	input, ok := map[string]func(*testing.T, *datadriven.TestData){
		"begin": s.begin, "page": s.page, "watch": s.watch, "batch": s.batch, "relist": s.relist,
		"wake": func(*testing.T, *datadriven.TestData) { s.m.wake() },
		"room": func(*testing.T, *datadriven.TestData) { s.verdict = actors.Accepted; s.m.room() },
		"sink": s.sink, "pass": s.pass, "stats": s.stats,
	}[d.Cmd]
	if !ok {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	input(t, d)
	s.perform()
	if d.Cmd != "sink" && d.Cmd != "pass" && d.Cmd != "stats" {
		fmt.Fprintf(&s.out, "(%s)\n", s.standing())
	}
	return s.out.String()
}

func (s *story) configure(t *testing.T, d *datadriven.TestData) {
	r := storyRules()
	var jitter, random string
	d.MaybeScanArgs(t, "prefix", &r.prefix)
	d.MaybeScanArgs(t, "pages", &r.pageSize)
	d.MaybeScanArgs(t, "resume-attempts", &r.resumeAttempts)
	if d.HasArg("behind") {
		r.listWhenBehind = revisionArg(t, d, "behind")
	}
	r.contiguous, r.warm = d.HasArg("contiguous"), d.HasArg("warm")
	if d.MaybeScanArgs(t, "jitter", &jitter) {
		r.backoff.Jitter, _ = strconv.ParseFloat(jitter, 64)
	}
	if d.MaybeScanArgs(t, "random", &random) {
		f, _ := strconv.ParseFloat(random, 64)
		r.random = func() float64 { return f }
	}
	s.m = &machine{rules: r}
	s.verdict, s.now = actors.Accepted, time.Unix(0, 0)
}

func (s *story) begin(t *testing.T, d *datadriven.TestData) {
	why := Started
	if len(d.CmdArgs) > 0 {
		why = reasonNamed(t, d)
	}
	s.m.begin(why)
}

func (s *story) page(t *testing.T, d *datadriven.TestData) {
	if err := errorArg(t, d); err != nil {
		s.m.page(nil, err, s.now)
		return
	}
	page := &backend.List{Items: []*store.Object{}}
	page.Revision = revisionArg(t, d, "rev")
	s.answeredBy(t, d)
	d.MaybeScanArgs(t, "continue", &page.Continue)
	d.MaybeScanArgs(t, "remaining", &page.Remaining)
	for line := range strings.Lines(d.Input) {
		page.Items = append(page.Items, object(t, d, strings.TrimSpace(line)))
	}
	s.m.page(page, nil, s.now)
}

func (s *story) watch(t *testing.T, d *datadriven.TestData) {
	s.answeredBy(t, d)
	s.m.watch(errorArg(t, d), s.now)
}

func (s *story) answeredBy(t *testing.T, d *datadriven.TestData) {
	s.m.answeredBy = ""
	d.MaybeScanArgs(t, "of", &s.m.answeredBy)
}

func (s *story) batch(t *testing.T, d *datadriven.TestData) {
	if !s.m.pulling() {
		fmt.Fprintln(&s.out, "not pulling now")
		return
	}
	if err := errorArg(t, d); err != nil {
		s.m.batch(backend.Batch{}, err, s.now)
		return
	}
	b := backend.Batch{After: revisionArg(t, d, "after"), Through: revisionArg(t, d, "through")}
	for line := range strings.Lines(d.Input) {
		verb, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		kind, known := map[string]store.EventType{"added": store.Added, "modified": store.Modified, "deleted": store.Deleted}[verb]
		require.True(t, ok && known, "%s: not an event: %q", d.Pos, line)
		o := object(t, d, name)
		event := store.Event{Type: kind, Revision: o.Revision, Object: o}
		if o.Key == "?" {
			event.Object = nil
		}
		b.Events = append(b.Events, event)
	}
	s.m.batch(b, nil, s.now)
}

func (s *story) relist(t *testing.T, d *datadriven.TestData) { s.m.relist(reasonNamed(t, d), s.now) }

func (s *story) sink(t *testing.T, d *datadriven.TestData) {
	verdict, ok := map[string]actors.Verdict{"open": actors.Accepted, "full": actors.Full, "gone": actors.Gone}[d.CmdArgs[0].Key]
	require.True(t, ok, "%s: unknown verdict", d.Pos)
	s.verdict = verdict
}

func (s *story) pass(t *testing.T, d *datadriven.TestData) {
	period, err := time.ParseDuration(d.CmdArgs[0].Key)
	require.NoError(t, err, d.Pos)
	s.now = s.now.Add(period)
}

func (s *story) stats(*testing.T, *datadriven.TestData) {
	st := s.m.stats
	fmt.Fprintf(&s.out, "lists %d, pages %d, watches %d, batches %d, events %d, errors %d, skipped %d, repeated %d, outages %d\n",
		st.Lists, st.Pages, st.Watches, st.Batches, st.Events, st.Errors, st.Skipped, st.Repeated, st.Outages)
	for why, n := range st.Relists {
		if n > 0 {
			fmt.Fprintf(&s.out, "listed because %s: %d\n", Reason(why), n)
		}
	}
}

// perform prints what the machine wants done, and answers for the sink.
func (s *story) perform() {
	for len(s.m.out) > 0 {
		e := s.m.out[0]
		s.m.out = s.m.out[1:]
		fmt.Fprintln(&s.out, s.describe(e))
		if e.do != doOffer {
			continue
		}
		switch s.verdict {
		case actors.Accepted:
			s.m.accepted()
		case actors.Full:
			s.m.full()
		case actors.Gone:
			s.m.gone()
		}
	}
}

func (s *story) describe(e effect) string {
	switch e.do {
	case doList:
		at := ""
		if e.list.Revision != 0 {
			at = fmt.Sprintf("at %d", e.list.Revision)
		}
		return strings.Join(strings.Fields(fmt.Sprintf("list limit=%d %s %s %s", e.list.Limit, e.list.Prefix, e.list.Continue, at)), " ")
	case doProgress:
		return "ask for progress"
	case doOpen:
		return fmt.Sprintf("watch from %d", e.from)
	case doPull:
		return "pull"
	case doClose:
		return "close the watch"
	case doWait:
		return fmt.Sprintf("wait %v", e.delay)
	case doOffer:
		return fmt.Sprintf("offer %s: %s", describeUpdate(s.m.held[0]), s.verdict)
	case doReport:
		return "report: " + e.err.Error()
	case doStop:
		return "stop"
	}
	return fmt.Sprintf("action %d?", e.do)
}

func (s *story) standing() string {
	state := s.m.stats.Phase.String()
	if s.m.why != 0 {
		state += ", list because " + s.m.why.String()
	}
	if len(s.m.held) > 0 {
		state += fmt.Sprintf(", holds %d", len(s.m.held))
	}
	return state + fmt.Sprintf(", at %d", s.m.stats.Revision)
}

func describeUpdate(u Update) string {
	text := u.Kind.String()
	switch u.Kind {
	case Replace:
		text += fmt.Sprintf("(%s)@%d", u.Reason, u.Revision)
		if u.StoreID != "" {
			text += " of " + u.StoreID
		}
		if u.Until != 0 {
			text += fmt.Sprintf(" until %d", u.Until)
		}
		for _, o := range u.Objects {
			text += fmt.Sprintf(" %s@%d", o.Key, o.Revision)
		}
	case Changes:
		text += fmt.Sprintf("@%d", u.Revision)
		for _, e := range u.Events {
			text += fmt.Sprintf(" [%v]", e)
		}
	case Progress:
		text += fmt.Sprintf("@%d", u.Revision)
	case Unavailable:
		text += " " + u.Err.Error()
		if u.Final {
			text += ", finally"
		}
	}
	return text
}

func errorArg(t *testing.T, d *datadriven.TestData) error {
	var name string
	if !d.MaybeScanArgs(t, "err", &name) {
		return nil
	}
	err, ok := storyErrors[name]
	require.True(t, ok, "%s: unknown error %q", d.Pos, name)
	return err
}

func revisionArg(t *testing.T, d *datadriven.TestData, name string) store.Revision {
	var n uint64
	d.ScanArgs(t, name, &n)
	return store.Revision(n)
}

func reasonNamed(t *testing.T, d *datadriven.TestData) Reason {
	for why, name := range reasonNames {
		if name == d.CmdArgs[0].Key {
			return Reason(why)
		}
	}
	d.Fatalf(t, "unknown reason")
	return 0
}

// object reads "key@revision".
func object(t *testing.T, d *datadriven.TestData, text string) *store.Object {
	if text == "nil" {
		return nil
	}
	key, number, _ := strings.Cut(text, "@")
	rev, err := strconv.ParseUint(number, 10, 64)
	require.NoError(t, err, "%s: not an object: %q", d.Pos, text)
	return &store.Object{Key: key, Revision: store.Revision(rev)}
}

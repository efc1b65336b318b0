package scenario

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Plan is a resolved scenario, with all defaults and random seeds filled in. It must
// not be changed. Make one with [Scenario.Resolve].
type Plan struct {
	Scenario
	// IsSmall reports whether the plan was resolved with [Options].Small.
	IsSmall bool
	// Hash identifies the load: plans with the same have equal hashes on every machine. It
	// is the SHA-256, in hexadecimal, of the plan's content without Name, About and
	// Assert. The content includes the seed and that of traces.
	Hash string
	// Timeline has all occurrences of faults, in order of time.
	Timeline []Moment
	// Checks are the parsed assertions.
	Checks []Check
}

// Moment is one occurrence of a fault.
type Moment struct {
	// At is when it begins and Until when it is over. They are equal for faults of
	// one moment.
	At, Until time.Duration
	// Fault is the index of the fault in the plan's Faults.
	Fault int
}

// newPlan makes the plan of a scenario whose defaults have been filled in. Errors:
// [Errors], about a trace that cannot be read.
func newPlan(s Scenario, small bool) (_ *Plan, err error) {
	p := &Plan{Scenario: s, IsSmall: small}
	for i := range s.Faults {
		p.Timeline = append(p.Timeline, occurrences(&s.Faults[i], i, s.Duration)...)
	}
	slices.SortStableFunc(p.Timeline, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	for _, a := range s.Assert {
		check, _ := a.Check() // cannot fail: it has been validated
		p.Checks = append(p.Checks, check)
	}
	if p.Hash, err = p.digest(); err != nil {
		return nil, err
	}
	return p, nil
}

// occurrences returns the occurrences of a fault before the end.
func occurrences(f *Fault, index int, end time.Duration) (moments []Moment) {
	for at := f.At; at < end; at += f.Every {
		moments = append(moments, Moment{At: at, Until: min(at+f.For, end), Fault: index})
		if f.Every <= 0 {
			break
		}
	}
	return moments
}

// digest hashes the load, as JSON, in which maps are sorted by key.
func (p *Plan) digest() (string, error) {
	load := p.Scenario
	load.Name, load.About, load.Assert = "", "", nil
	content, err := json.Marshal(load)
	if err != nil { // such as for NaN, which Validate refuses
		return "", err
	}
	sum := sha256.New()
	_, _ = sum.Write(content) // cannot fail
	for i, w := range p.Writers {
		if w.Trace == "" {
			continue
		}
		if err := p.copyTrace(sum, w.Trace); err != nil {
			return "", Errors{{Field: fmt.Sprintf("writers[%d].trace", i), Problem: err.Error(), Fix: traceFix}}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// WatcherCount returns how many watchers there are.
func (p *Plan) WatcherCount() (n int) {
	for _, w := range p.Watchers {
		n += w.Count
	}
	return n
}

// Explain returns the plan as a scenario in YAML with all defaults filled in, which
// can itself be run and gives the same plan. Comments in it have totals and the timeline.
// Equal plans have equal explanations. The error is that of encoding the YAML.
func (p *Plan) Explain() (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s, as it runs. plan %.12s\n", oneLine(p.Name), p.Hash)
	body, err := yaml.ValueToNode(p.Scenario, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return "", err
	}
	ast.Walk(parseable{}, body)
	fmt.Fprintln(&b, body)
	p.explainTotals(&b)
	p.explainTimeline(&b)
	return b.String(), nil
}

// parseable is an [ast.Visitor] that rewrites scalars which the YAML library prints
// but does not read back: it reads 1e+06 as text, .nan as a number and "? " as the beginning of a
// key, and loses line breaks and tabs at the ends of texts.
type parseable struct{}

func (v parseable) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.FloatNode:
		if f, err := strconv.ParseFloat(n.Token.Value, 64); err == nil && strings.Contains(n.Token.Value, "e") {
			n.Token.Value = withPoint(strconv.FormatFloat(f, 'f', -1, 64))
		}
	case *ast.StringNode: // its value is what is printed, in quotes or not
		n.Value = oneLine(n.Value)
		if token.New(n.Value, n.Value, nil).Type != token.StringType || strings.HasPrefix(n.Value, "? ") {
			n.Value = strconv.Quote(n.Value)
		}
	}
	return v
}

// withPoint appends a fraction to a whole number, as the YAML library does.
func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}

// oneLine returns the text, in quotes if it has line breaks or other characters
// that are not printable.
func oneLine(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func (p *Plan) explainTotals(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n# at the start: objects %d, watchers in all: %d\n", p.Objects.Count, p.WatcherCount())
	for _, w := range p.Writers {
		if w.Trace != "" {
			fmt.Fprintf(b, "# %s: all changes of %s within %v\n", w.Name, oneLine(w.Trace), w.Stop-w.Start)
			continue
		}
		fmt.Fprintf(b, "# %s: about %.0f writes in %v\n", w.Name, w.Rate*(w.Stop-w.Start).Seconds(), w.Stop-w.Start)
	}
	for _, w := range p.Watchers {
		if sel := p.Select(w, 0); sel != (Selection{}) {
			fmt.Fprintf(b, "# %s: the first selects %s\n", w.Name, sel)
		}
	}
}

// maxMoments is the highest number of occurrences that are printed.
const maxMoments = 50

func (p *Plan) explainTimeline(b *bytes.Buffer) {
	if len(p.Timeline) > 0 {
		b.WriteString("#\n# timeline\n")
	}
	for i, m := range p.Timeline {
		if i == maxMoments {
			fmt.Fprintf(b, "#   … and %d more\n", len(p.Timeline)-i)
			return
		}
		f := p.Faults[m.Fault]
		fmt.Fprintf(b, "#   %8v  %s", m.At.Round(time.Millisecond), oneLine(f.Name))
		if m.Until > m.At {
			fmt.Fprintf(b, ", for %v", (m.Until - m.At).Round(time.Millisecond))
		}
		b.WriteByte('\n')
	}
}

// String returns the selection as text, such as "fields node=node-3, prefix a".
func (s Selection) String() string {
	text := ""
	for _, part := range []struct{ name, value string }{
		{"labels", s.Labels}, {"fields", s.Fields}, {"prefix", s.Prefix}, {"key", s.Key},
	} {
		if part.value == "" {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += part.name + " " + oneLine(part.value)
	}
	return text
}

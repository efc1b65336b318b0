package scenario

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Explain returns the plan for people: a scenario with nothing left to defaults,
// which can itself be run, and as comments what follows from it. Equal plans
// have equal explanations.
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

// parseable changes those scalars of a YAML tree that would not be read as what
// they are: the library writes 1e+06, which it reads as text, and texts with line
// breaks or tabs, which it reads without some of them.
type parseable struct{}

func (v parseable) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.FloatNode:
		if f, err := strconv.ParseFloat(n.Token.Value, 64); err == nil && strings.Contains(n.Token.Value, "e") {
			n.Token.Value = withPoint(strconv.FormatFloat(f, 'f', -1, 64))
		}
	case *ast.StringNode:
		n.Value = oneLine(n.Value)
	}
	return v
}

// withPoint gives a number a fraction, which tells it from a whole one.
func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}

// oneLine returns the text, in quotes if it has line breaks or other characters
// that are not printed.
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

// maxMoments is how much of a timeline is printed.
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

// String prints the selection as selectors are written.
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

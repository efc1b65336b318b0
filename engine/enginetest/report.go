package enginetest

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/watchmill/watchmill/engine"
)

// equal reports whether the events are the wanted ones, one by one.
func equal[T any](wants []Want, got []engine.Event[T]) bool {
	if len(wants) != len(got) {
		return false
	}
	for i, want := range wants {
		if !matches(want, got[i]) {
			return false
		}
	}
	return true
}

// report returns the wanted and the received events as a diff of lines:
//
//	  ADDED a@2 {Name:a}
//	- MODIFIED a {Name:a N:1}         wanted, and did not come
//	+ DELETED a@3 {Name:a}            came, and was not wanted
//
// Where an event came in place of a wanted one, the difference between their values
// follows. Events that are the same at the beginning and at the end are not compared with
// the rest. If too many are left to compare, all wanted events come first, and then those
// that were received.
func report[T any](wants []Want, got []engine.Event[T]) string {
	if len(wants)+len(got) == 0 {
		return "  (no events)"
	}
	head, tail := sameEnds(wants, got)
	r := reporter[T]{wants: wants[head : len(wants)-tail], got: got[head : len(got)-tail]}
	r.same(got[:head])
	if len(r.wants)*len(r.got) <= maxTable {
		r.common = commonLengths(r.wants, r.got)
		r.lines()
	} else {
		r.lists()
	}
	r.same(got[len(got)-tail:])
	return strings.TrimSuffix(r.text.String(), "\n")
}

// maxTable is how many pairs of a wanted and a received event are compared, a microsecond or
// more each.
const maxTable = 1 << 18

// sameEnds returns how many of the first events, and how many of the last others, are the
// wanted ones.
func sameEnds[T any](wants []Want, got []engine.Event[T]) (head, tail int) {
	shorter := min(len(wants), len(got))
	for head < shorter && matches(wants[head], got[head]) {
		head++
	}
	for tail < shorter-head && matches(wants[len(wants)-1-tail], got[len(got)-1-tail]) {
		tail++
	}
	return head, tail
}

type reporter[T any] struct {
	wants []Want
	got   []engine.Event[T]
	// common holds, by i and j, how many of wants[i:] can be matched, in order, by got[j:].
	common [][]int
	text   strings.Builder
}

// commonLengths is the table of the longest common subsequence.
func commonLengths[T any](wants []Want, got []engine.Event[T]) [][]int {
	table := make([][]int, len(wants)+1)
	for i := range table {
		table[i] = make([]int, len(got)+1)
	}
	for i := len(wants) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if matches(wants[i], got[j]) {
				table[i][j] = 1 + table[i+1][j+1]
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// same writes events that are the wanted ones.
func (r *reporter[T]) same(events []engine.Event[T]) {
	for _, ev := range events {
		r.line("  ", show(ev))
	}
}

// lists writes the wanted events and those that came, without comparing them.
func (r *reporter[T]) lists() {
	for _, want := range r.wants {
		r.line("- ", want.String())
	}
	for _, ev := range r.got {
		r.line("+ ", show(ev))
	}
}

// lines writes the diff from the beginning to the end.
func (r *reporter[T]) lines() {
	i, j := 0, 0
	for i < len(r.wants) || j < len(r.got) {
		switch {
		case i < len(r.wants) && j < len(r.got) && matches(r.wants[i], r.got[j]):
			r.line("  ", show(r.got[j]))
			i, j = i+1, j+1
		case i < len(r.wants) && j < len(r.got) && r.replaced(i, j):
			r.line("- ", r.wants[i].String())
			r.line("+ ", show(r.got[j]))
			r.difference(r.wants[i], r.got[j])
			i, j = i+1, j+1
		case i < len(r.wants) && (j == len(r.got) || r.common[i+1][j] >= r.common[i][j+1]):
			r.line("- ", r.wants[i].String())
			i++
		default:
			r.line("+ ", show(r.got[j]))
			j++
		}
	}
}

func (r *reporter[T]) line(margin, text string) { r.text.WriteString("  " + margin + text + "\n") }

// replaced reports whether got[j] came in place of wants[i]: neither matches
// anything else.
func (r *reporter[T]) replaced(i, j int) bool {
	return r.common[i+1][j+1] == r.common[i][j] && r.wants[i].kind == r.got[j].Type
}

// difference writes what is different about two values.
func (r *reporter[T]) difference(want Want, ev engine.Event[T]) {
	if want.value == nil || ev.Object == nil {
		return
	}
	if diff := cmp.Diff(want.value, any(ev.Object.Value), allFields); diff != "" {
		r.text.WriteString(indent(diff, "      ") + "\n")
	}
}

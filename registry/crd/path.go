package crd

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// path is a way into an object: the part of JSONPath that printer columns use.
//
//	.spec.size   ['a.b/c']   ['a\.b/c']   .items[0]   .items[-1]   .items[*]   .items[-1:]
//	.status.conditions[?(@.type=="Ready")].status
type path []step

// step returns the parts of a value that it selects, none if the value does not have them.
type step func(any) []any

// find returns the first value at the path, nil if there is none.
func (p path) find(value any) any {
	if len(p) == 0 || value == nil {
		return value
	}
	for _, part := range p[0](value) {
		if found := p[1:].find(part); found != nil {
			return found
		}
	}
	return nil
}

// errNotUnderstood: a path has a part that is not supported. It may be valid JSONPath nevertheless.
var errNotUnderstood = errors.New(`is not understood: give a path of .name, ['name'], [0], [0:2], [*] and [?(@.name=="value")]`)

// maxPath is how many bytes a path may have. Each condition within another is read once more.
const maxPath = 1 << 10

// parsePath reads a path.
func parsePath(text string) (path, error) {
	rest := strings.TrimPrefix(text, "$")
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "{"), "}")
	if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		return nil, fmt.Errorf("%s must begin with a dot, as .spec.size does", quoted(text))
	}
	if len(text) > maxPath {
		return nil, fmt.Errorf("%s %w, in at most %d bytes", quoted(text), errNotUnderstood, maxPath)
	}
	var p path
	for rest != "" {
		var next step
		var ok bool
		if next, rest, ok = parseStep(rest); !ok {
			return nil, fmt.Errorf("%s %w", quoted(text), errNotUnderstood)
		}
		p = append(p, next)
	}
	return p, nil
}

// parseStep reads the first step of a path.
func parseStep(text string) (next step, rest string, ok bool) {
	if name, isName := strings.CutPrefix(text, "."); isName {
		name, rest = cutName(name)
		if name == "*" {
			return each, rest, true
		}
		return member(name), rest, name != ""
	}
	inside, rest, ok := cutBracket(text)
	if !ok {
		return nil, "", false
	}
	if condition, isFilter := strings.CutPrefix(inside, "?("); isFilter {
		condition, ok = strings.CutSuffix(condition, ")")
		next, isUnderstood := filter(condition)
		return next, rest, ok && isUnderstood
	}
	if name, isQuoted := unquote(inside); isQuoted {
		name = strings.ReplaceAll(name, `\`, "") // which escapes dots, as Kubernetes demands it
		return member(name), rest, name != ""
	}
	switch inside {
	case "*":
		return each, rest, true
	case "": // which Kubernetes takes for the first item
		return index(0), rest, true
	}
	if strings.Contains(inside, ":") {
		next, ok = parseSlice(inside)
		return next, rest, ok
	}
	i, err := strconv.Atoi(inside)
	return index(i), rest, err == nil
}

// toEnd is the end of a slice that has none.
const toEnd = math.MaxInt

// parseSlice reads what is between the brackets of [first:end] or [first:end:step], in which each
// may be left out.
func parseSlice(text string) (next step, ok bool) {
	numbers := [3]int{0, toEnd, 1}
	parts := strings.Split(text, ":")
	if len(parts) > len(numbers) {
		return nil, false
	}
	for i, part := range parts {
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || i == 2 && n <= 0 {
			return nil, false
		}
		numbers[i] = n
	}
	return slice(numbers[0], numbers[1], numbers[2]), true
}

// cutBracket returns what is between the brackets at the beginning.
func cutBracket(text string) (inside, rest string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	end := indexOutside(text[1:], func(rest string) bool { return rest[0] == ']' })
	if end < 0 {
		return "", "", false
	}
	return text[1 : end+1], text[end+2:], true
}

// indexOutside returns where found is true first, outside of quotes and of brackets, and
// -1 if it is nowhere. It gets the text from there on.
func indexOutside(text string, found func(rest string) bool) int {
	var quote byte
	depth := 0
	for i := range len(text) {
		switch b := text[i]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case depth == 0 && found(text[i:]):
			return i
		case b == '"' || b == '\'':
			quote = b
		case b == '[':
			depth++
		case b == ']':
			depth--
		}
	}
	return -1
}

// cutName returns the name at the beginning, in which a backslash escapes.
func cutName(text string) (name, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '.' || c == '[':
			return b.String(), text[i:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

func unquote(text string) (string, bool) {
	if len(text) < 2 || text[0] != text[len(text)-1] || text[0] != '\'' && text[0] != '"' {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func member(name string) step {
	return func(value any) []any {
		fields, _ := value.(map[string]any)
		return []any{fields[name]}
	}
}

// index selects an item, from the end if i is negative.
func index(i int) step {
	return func(value any) []any {
		items, _ := value.([]any)
		at := i
		if at < 0 {
			at += len(items)
		}
		if at < 0 || at >= len(items) {
			return nil
		}
		return items[at : at+1]
	}
}

// slice selects every by-th item from first to before end, which count from the end of the list
// if they are negative. As in Kubernetes, it selects none if the list does not reach that far.
func slice(first, end, by int) step {
	return func(value any) (selected []any) {
		items, _ := value.([]any)
		from, to := first, end
		if from < 0 {
			from += len(items)
		}
		if to == toEnd {
			to = len(items)
		} else if to < 0 {
			to += len(items)
		}
		if from < 0 || to > len(items) {
			return nil
		}
		for i := from; i < to; i += min(by, len(items)) {
			selected = append(selected, items[i])
		}
		return selected
	}
}

// each selects the items of a list, or the values of an object in the order of their names.
func each(value any) []any {
	if items, isList := value.([]any); isList {
		return items
	}
	fields, _ := value.(map[string]any)
	var values []any
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values = append(values, fields[name])
	}
	return values
}

// filter selects the items that meet a condition.
func filter(condition string) (step, bool) {
	meets, ok := parseCondition(condition)
	if !ok {
		return nil, false
	}
	return func(value any) []any {
		items, _ := value.([]any)
		var selected []any
		for _, item := range items {
			if meets(item) {
				selected = append(selected, item)
			}
		}
		return selected
	}, true
}

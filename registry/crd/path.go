package crd

import (
	"fmt"
	"strconv"
	"strings"
)

// path is a way into an object: the part of JSONPath that printer columns use.
//
//	.spec.size   ['a.b/c']   .items[0]   .status.conditions[?(@.type=="Ready")].status
type path []step

// step returns a part of a value, nil if the value does not have it.
type step func(any) any

// find returns the value at the path, nil if there is none.
func (p path) find(value any) any {
	for _, next := range p {
		if value == nil {
			return nil
		}
		value = next(value)
	}
	return value
}

// parsePath reads a path.
func parsePath(text string) (path, error) {
	rest := strings.TrimPrefix(text, "$")
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "{"), "}")
	if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		return nil, fmt.Errorf("%q must begin with a dot, as .spec.size does", text)
	}
	var p path
	for rest != "" {
		var next step
		var ok bool
		if next, rest, ok = parseStep(rest); !ok {
			return nil, fmt.Errorf(`%q is not understood: .name, ['name'], [0] and [?(@.name=="value")] are`, text)
		}
		p = append(p, next)
	}
	return p, nil
}

// parseStep reads the first step of a path.
func parseStep(text string) (next step, rest string, ok bool) {
	if name, isName := strings.CutPrefix(text, "."); isName {
		name, rest = cutName(name)
		return member(name), rest, name != ""
	}
	inside, rest, ok := cutBracket(text)
	if !ok {
		return nil, "", false
	}
	if condition, isFilter := strings.CutPrefix(inside, "?("); isFilter {
		next, ok = filter(strings.TrimSuffix(condition, ")"))
		return next, rest, ok
	}
	if name, isQuoted := unquote(inside); isQuoted {
		return member(name), rest, name != ""
	}
	i, err := strconv.Atoi(inside)
	return index(i), rest, err == nil && i >= 0
}

// cutBracket returns what is between the brackets at the beginning.
func cutBracket(text string) (inside, rest string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	var quote byte
	for i := 1; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == ']':
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
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
	return func(value any) any {
		fields, _ := value.(map[string]any)
		return fields[name]
	}
}

func index(i int) step {
	return func(value any) any {
		if items, ok := value.([]any); ok && i < len(items) {
			return items[i]
		}
		return nil
	}
}

// filter finds the first item of which a path has a value, as in
// @.type=="Ready".
func filter(condition string) (step, bool) {
	left, right, ok := strings.Cut(condition, "==")
	left, isItem := strings.CutPrefix(strings.TrimSpace(left), "@")
	want, isQuoted := unquote(strings.TrimSpace(right))
	p, err := parsePath(left)
	if !ok || !isItem || !isQuoted || err != nil {
		return nil, false
	}
	return func(value any) any {
		items, _ := value.([]any)
		for _, item := range items {
			if got := p.find(item); got != nil && fmt.Sprint(got) == want {
				return item
			}
		}
		return nil
	}, true
}

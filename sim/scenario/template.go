package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// placeholder is a name in braces.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Key returns the key of the nth object.
func (o Objects) Key(n int) string {
	return fmt.Sprintf("ns-%d/obj-%d", n%max(1, o.Namespaces), n)
}

// Value returns the nth of a field's or label's values.
func Value(name string, n int) string { return name + "-" + strconv.Itoa(n) }

// placeholders returns what templates may have, sorted.
func (o Objects) placeholders() []string {
	names := []string{"i", "namespace"}
	if o.Count > 0 {
		names = append(names, "key")
	}
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(o.Fields)), maps.Keys(o.Labels))
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		names[i] = "{" + name + "}"
	}
	return names
}

// fill returns the template as the ith of its users has it. Unknown names stay.
func (o Objects) fill(template string, i int) string {
	return placeholder.ReplaceAllStringFunc(template, func(match string) string {
		if value, known := o.value(match[1:len(match)-1], i); known {
			return value
		}
		return match
	})
}

func (o Objects) value(name string, i int) (value string, known bool) {
	switch {
	case name == "i":
		return strconv.Itoa(i), true
	case name == "namespace":
		return "ns-" + strconv.Itoa(i%max(1, o.Namespaces)), true
	case name == "key" && o.Count > 0:
		return o.Key(i % o.Count), true
	case o.Fields[name] > 0:
		return Value(name, i%o.Fields[name]), true
	case o.Labels[name] > 0:
		return Value(name, i%o.Labels[name]), true
	}
	return "", false
}

// Selection is what one watcher or reader asks for.
type Selection struct {
	Labels, Fields, Prefix, Key string
}

// Select returns what the ith watcher of the group asks for.
func (p *Plan) Select(w Watcher, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(w.Labels, i), Fields: o.fill(w.Fields, i), Prefix: o.fill(w.Prefix, i), Key: o.fill(w.Key, i)}
}

// SelectRead returns what the ith list of the group asks for.
func (p *Plan) SelectRead(r Reader, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(r.Labels, i), Fields: o.fill(r.Fields, i), Prefix: o.fill(r.Prefix, i)}
}

// template demands that the placeholders of a template are known.
func (c *checker) template(field, template string, o Objects) (ok bool) {
	ok = true
	for _, match := range placeholder.FindAllString(template, -1) {
		if _, known := o.value(match[1:len(match)-1], 0); !known {
			ok = false
			c.wrong(field, shortened(match, maxQuoted)+" stands for nothing", "there are "+listed(o.placeholders()))
		}
	}
	return ok
}

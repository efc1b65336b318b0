package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// places has the position of each field in a file, by the field's path.
type places map[string]*token.Position

// of returns the line and column of a field, or of the innermost field around it
// that is in the file.
func (p places) of(field string) (line, column int) {
	for {
		if at := p[field]; at != nil {
			return at.Line, at.Column
		}
		cut := strings.LastIndexAny(field, ".[")
		if cut < 0 {
			return 1, 1
		}
		field = field[:cut]
	}
}

// has reports whether the file has one of the fields.
func (p places) has(fields ...string) bool {
	return slices.ContainsFunc(fields, func(field string) bool { return p[field] != nil })
}

// indexer walks a YAML tree, records the positions of all fields, and reports
// unknown fields and values of a wrong type.
type indexer struct {
	places places
	// anchors has the anchors that have been walked, by name. An anchor is added
	// after its value, so that no value contains itself.
	anchors map[string]ast.Node
	// overridden has the paths of fields that are not taken from the mapping that is being
	// merged, since a mapping around it has them itself.
	overridden map[string]int
	// nodes, written and depth are the amounts that maxNodes, maxWritten and maxDepth
	// limit. The value of an alias counts each time that it is used.
	nodes, written, depth int
	// expanded is the alias whose value is being walked, the outermost if aliases
	// are nested.
	expanded *ast.AliasNode
	// exceeded is set when a limit is exceeded, which ends the walk.
	exceeded bool
	errs     Errors
}

// walk walks the node at path, which is decoded into a value of type t.
func (x *indexer) walk(node ast.Node, t reflect.Type, path string) {
	if !x.fits(node, path) {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		x.walk(n.Value, t, path)
		x.anchor(n, path)
		return
	case *ast.AliasNode:
		x.alias(n, t, path)
		return
	case *ast.TagNode: // some make the decoder panic
		x.wrong(n, path, "has the tag "+shortened(n.GetToken().Value, maxQuoted), "leave it out; put a text that looks like a number in quotes")
		return
	case *ast.NullNode, *ast.MergeKeyNode, nil:
		return
	}
	x.depth++
	defer func() { x.depth-- }()
	switch t.Kind() {
	case reflect.Struct:
		x.fields(node, t, path)
	case reflect.Map:
		x.entries(node, t, path, func(pair *ast.MappingValueNode, at string) { x.walk(pair.Value, t.Elem(), at) })
	case reflect.Slice:
		x.items(node, t, path)
	default:
		x.scalar(node, t, path)
	}
}

// fits counts a node, and reports whether the file is still within its limits.
func (x *indexer) fits(node ast.Node, path string) bool {
	if x.exceeded || node == nil {
		return !x.exceeded
	}
	x.nodes++
	x.written += len(path) + len(node.GetToken().Value)
	switch {
	case x.nodes > maxNodes:
		x.exceed(node, fmt.Sprintf("there are more than %d lists, mappings and values", maxNodes))
	case x.written > maxWritten:
		x.exceed(node, fmt.Sprintf("the values and the paths to them have more than %d bytes", maxWritten))
	case x.depth > maxDepth: // the lists and mappings around the node
		x.exceed(node, fmt.Sprintf("more than %d lists and mappings are within each other", maxDepth))
	}
	return !x.exceeded
}

// exceed ends the walk with one error, which replaces all others.
func (x *indexer) exceed(node ast.Node, problem string) {
	fix := "nest less deeply, or use shorter names"
	if x.expanded != nil {
		node, problem, fix = x.expanded, problem+", aliases written out", "use fewer aliases"
	}
	at := node.GetToken().Position
	x.exceeded = true
	x.errs = Errors{{Line: at.Line, Column: at.Column, Problem: problem, Fix: fix}}
}

// anchor records an anchor for the aliases after it.
func (x *indexer) anchor(n *ast.AnchorNode, path string) {
	name := n.Name.GetToken().Value
	if before := x.anchors[name]; before != nil && before != n.Value {
		x.wrong(n, path, fmt.Sprintf("there is another anchor &%s above", shortened(name, maxQuoted)), "give each a name of its own")
	}
	x.anchors[name] = n.Value
}

// alias walks the value of an alias, as a value of the type t.
func (x *indexer) alias(n *ast.AliasNode, t reflect.Type, path string) {
	name := n.Value.GetToken().Value
	node := x.anchors[name]
	if node == nil {
		name = shortened(name, maxQuoted)
		x.wrong(n, path, fmt.Sprintf("there is no anchor &%s above the alias *%s", name, name), fmt.Sprintf("write &%s before the value that the alias repeats", name))
		return
	}
	if x.expanded == nil {
		x.expanded = n
		defer func() { x.expanded = nil }()
	}
	x.walk(node, t, path)
}

// fields walks a mapping that is decoded into a struct.
func (x *indexer) fields(node ast.Node, t reflect.Type, path string) {
	known := map[string]reflect.Type{}
	for field := range t.Fields() {
		known[nameInFile(field)] = field.Type
	}
	delete(known, "") // fields that a file does not have
	x.entries(node, t, path, func(pair *ast.MappingValueNode, at string) {
		if field, ok := known[keyOf(pair)]; ok {
			x.walk(pair.Value, field, at)
			return
		}
		x.wrong(pair.Key, at, "there is no such field", "there are "+strings.Join(fieldNames(t), ", "))
	})
}

func (x *indexer) items(node ast.Node, t reflect.Type, path string) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		x.wrong(node, path, "is not a list", "begin each of its items with a dash")
		return
	}
	for i, item := range list.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		x.places[at] = item.GetToken().Position
		if _, null := item.(*ast.NullNode); null {
			x.wrong(item, at, "is empty", "write something, or leave out the dash")
		}
		x.walk(item, t.Elem(), at)
	}
}

func (x *indexer) scalar(node ast.Node, t reflect.Type, path string) {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		x.wrong(node, path, "is not "+kindName(t), "write "+kindExample(t))
		return
	}
	value := node.GetToken().Value
	switch whole := t.Kind() == reflect.Int || t.Kind() == reflect.Uint64; {
	case isA(node, t):
	case isQuoted(node, t):
		x.wrong(node, path, quoted(value)+" is text, not "+kindName(t), "leave out the quotes")
	case whole && wholeNumber.MatchString(value), t.Kind() == reflect.Float64 && isTooLarge(node):
		x.wrong(node, path, shortened(value, maxQuoted)+" is too large", "write a smaller number")
	default:
		x.wrong(node, path, quoted(value)+" is not "+kindName(t), "write "+kindExample(t))
	}
}

// wholeNumber matches whole numbers of any size.
var wholeNumber = regexp.MustCompile(`^\+?[0-9]+$`)

// plainNumber matches the numbers of YAML, with or without a point and an exponent.
var plainNumber = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// isA reports whether a scalar can be decoded into the type.
func isA(node ast.Node, t reflect.Type) (ok bool) {
	if t == reflect.TypeFor[time.Duration]() {
		_, err := time.ParseDuration(node.GetToken().Value)
		return err == nil
	}
	switch t.Kind() {
	case reflect.Bool:
		_, ok = node.(*ast.BoolNode)
	case reflect.Uint64, reflect.Int:
		_, ok = node.(*ast.IntegerNode)
		negative := strings.HasPrefix(node.GetToken().Value, "-")
		ok = ok && !(negative && t.Kind() == reflect.Uint64)
	case reflect.Float64:
		switch n := node.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			ok = true
		case *ast.StringNode: // the parser takes 1e6 for text, as it does what is in quotes
			ok = isPlainNumber(n) && !isTooLarge(n)
		}
	default:
		ok = true
	}
	return ok
}

// isQuoted reports whether a scalar is text only because it is in quotes, which a type does not take.
func isQuoted(node ast.Node, t reflect.Type) bool {
	tk := node.GetToken()
	if tk.Type != token.SingleQuoteType && tk.Type != token.DoubleQuoteType {
		return false
	}
	switch t.Kind() {
	case reflect.Bool:
		return tk.Value == "true" || tk.Value == "false"
	case reflect.Int, reflect.Uint64:
		return wholeNumber.MatchString(tk.Value)
	}
	return t.Kind() == reflect.Float64 && plainNumber.MatchString(tk.Value)
}

// isPlainNumber reports whether a scalar that the parser takes for text is a number.
func isPlainNumber(n *ast.StringNode) bool {
	return n.GetToken().Type == token.StringType && plainNumber.MatchString(n.Value)
}

// isTooLarge reports whether a scalar is a number that a float64 cannot hold. One that is too
// close to zero is zero.
func isTooLarge(node ast.Node) bool {
	n, ok := node.(*ast.StringNode)
	if !ok || !isPlainNumber(n) {
		return false
	}
	_, err := strconv.ParseFloat(n.Value, 64)
	return errors.Is(err, strconv.ErrRange)
}

// entries calls each for the entries of a mapping, and walks the mappings that are
// merged into it as if they were the mapping itself, without the fields that it has. It
// moves the merged ones to the front, so that the decoder, which takes the last of two
// entries with one key, takes the mapping's own.
func (x *indexer) entries(node ast.Node, t reflect.Type, path string, each func(pair *ast.MappingValueNode, at string)) {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		slices.SortStableFunc(n.Values, mergedFirst)
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		x.noMapping(node, t, path)
	}
	for i, pair := range pairs {
		if pair.Key.IsMergeKey() {
			x.merge(pair.Value, pairs[i+1:], t, path)
			continue
		}
		if at := pathOf(pair, path); x.overridden[at] == 0 {
			x.places[at] = pair.Key.GetToken().Position
			each(pair, at)
		}
	}
}

// mergedFirst orders the entries of a mapping.
func mergedFirst(a, b *ast.MappingValueNode) int {
	switch merged := a.Key.IsMergeKey(); {
	case merged == b.Key.IsMergeKey():
		return 0
	case merged:
		return -1
	}
	return 1
}

// merge walks a mapping that is merged into the one at path, which has the entries own.
func (x *indexer) merge(node ast.Node, own []*ast.MappingValueNode, t reflect.Type, path string) {
	for _, pair := range own {
		x.overridden[pathOf(pair, path)]++
	}
	x.walk(node, t, path)
	for _, pair := range own {
		x.overridden[pathOf(pair, path)]--
	}
}

func (x *indexer) noMapping(node ast.Node, t reflect.Type, path string) {
	switch {
	case path == "":
		x.wrong(node, path, "the file has no fields", `write a scenario, which has fields such as "duration: 20s"`)
	case t.Kind() == reflect.Struct:
		x.wrong(node, path, "has no fields", "write them by name; there are "+strings.Join(fieldNames(t), ", "))
	default:
		x.wrong(node, path, "has no fields", `write fields such as "name: value"`)
	}
}

// fieldNames returns the names that the fields of a struct have in a file, in their order.
func fieldNames(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		if name := nameInFile(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func nameInFile(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

// pathOf returns the path of an entry of the mapping at path.
func pathOf(pair *ast.MappingValueNode, path string) string {
	if path != "" {
		path += "."
	}
	return path + keyOf(pair)
}

func (x *indexer) wrong(node ast.Node, field, problem, fix string) {
	if x.exceeded {
		return
	}
	at := node.GetToken().Position
	x.errs.add(&Error{Line: at.Line, Column: at.Column, Field: field, Problem: problem, Fix: fix})
}

func keyOf(pair *ast.MappingValueNode) string { return pair.Key.GetToken().Value }

// kindName and kindExample describe a type in the words of YAML.
func kindName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Uint64:
		return "a whole number of zero or more"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "a value"
}

func kindExample(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms or 30s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number such as 500 or 0.5"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Uint64:
		return "a whole number such as 50"
	}
	return "a word or a text in quotes"
}

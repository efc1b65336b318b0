package jsonlimit

import (
	"fmt"
	"math"
)

// MaxDepth is how deep JSON may be nested: far more than objects need, and little
// enough for every parser.
const MaxDepth = 100

// recordedDepth is how much deeper metadata.managedFields may be: four lists and objects are around
// the fields of an entry, and a field that something is in has an object to say that it is owned itself.
const recordedDepth = 5

// The parser joins the names of nested fields for each field that is repeated or unknown. The names
// of one field and of those around it may have maxPath bytes without being counted. All that have
// more may have maxPaths bytes in all. Managed fields need that: they have the items of sets as
// names, which may be long.
const (
	maxPath  = 16 << 10
	maxPaths = 16 << 20
)

// ErrDepth and ErrPaths are the errors of [Check].
var (
	ErrDepth = fmt.Errorf("the JSON is nested more than %d deep", MaxDepth)
	ErrPaths = fmt.Errorf("the paths of deeply nested fields with long names have more than %d bytes in all: shorten the names", maxPaths)
)

// Check refuses an object, or a patch of one, that would take a parser too long, with [ErrDepth] or
// [ErrPaths].
func Check(body []byte) error { return check(body, maxPaths) }

// CheckDepth is Check without a bound of the paths, for JSON of a server that has checked them.
func CheckDepth(body []byte) error { return check(body, math.MaxInt) }

// check refuses JSON that is nested too deep, or whose long paths of fields have more than
// mostPaths bytes in all.
func check(body []byte, mostPaths int) error {
	var at place
	var text []byte
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			text = body[i+1:][:textSize(body[i+1:])]
			i += len(text) + 1
		case '{', '[':
			if !at.enter() {
				return ErrDepth
			}
		case '}', ']':
			at.leave()
		case ':':
			if at.field(text) > mostPaths {
				return ErrPaths
			}
		}
	}
	return nil
}

// place is where a reader of an object's JSON is. Content of metadata.managedFields is counted
// separately: it was recorded of an object that was not refused.
type place struct {
	depth      int
	names      [MaxDepth + recordedDepth + 1]int // the sizes of the names of the fields around, by depth
	path       int                               // their sum
	inMetadata bool
	recorded   int    // 1 within metadata.managedFields, else 0
	long       [2]int // the bytes of the long paths of the object, and of those recorded
}

// enter begins an object or a list, and reports whether it may be there.
func (p *place) enter() bool {
	p.depth++
	return p.depth <= MaxDepth+p.recorded*recordedDepth
}

// leave ends an object or a list.
func (p *place) leave() {
	p.path -= p.names[p.depth]
	p.names[p.depth] = 0
	p.depth = max(p.depth-1, 0)
}

// field begins a field, and returns how many bytes the long paths have so far.
func (p *place) field(name []byte) (long int) {
	if p.depth == 1 {
		p.inMetadata = string(name) == "metadata"
	}
	if p.depth <= 2 {
		p.recorded = 0
	}
	if p.depth == 2 && p.inMetadata && string(name) == "managedFields" {
		p.recorded = 1
	}
	p.path += len(name) - p.names[p.depth]
	p.names[p.depth] = len(name)
	if p.path > maxPath {
		p.long[p.recorded] += p.path
	}
	return p.long[p.recorded]
}

// textSize returns how many bytes there are before the quote that ends a text.
func textSize(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}

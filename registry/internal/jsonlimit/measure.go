package jsonlimit

import "slices"

// TooDeep reports whether a value, as JSON or YAML is decoded, is nested deeper than [MaxDepth].
func TooDeep(value any) bool { return deeper(value, MaxDepth) }

// deeper reports whether a value is nested in more levels than that.
func deeper(value any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if deeper(member, levels-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return deeper(item, levels-1) })
	}
	return false
}

// Longest returns how many items the longest list has, and how many fields the largest object, in JSON that
// is not nested too deep.
func Longest(text []byte) (items, fields int) {
	var commas [MaxDepth + recordedDepth + 1]int // by depth
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += textSize(text[i+1:]) + 1
		case '{', '[':
			depth = min(depth+1, len(commas)-1)
			commas[depth] = 0
		case ',':
			commas[depth]++
		case ']':
			items = max(items, commas[depth]+1)
			depth = max(depth-1, 0)
		case '}':
			fields = max(fields, commas[depth]+1)
			depth = max(depth-1, 0)
		}
	}
	return items, fields
}

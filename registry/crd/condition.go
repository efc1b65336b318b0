package crd

import (
	"fmt"
	"strconv"
	"strings"
)

// parseCondition reads what is between the parentheses of a filter: a path of the item,
// which then must have a value, or a path, == or !=, and a string, a number or a boolean.
//
//	@.type=="Ready"   @['type'] != 'Ready'   @.active==true   @.address
func parseCondition(text string) (meets func(item any) bool, ok bool) {
	left, operator, right := cutOperator(text)
	left, isItem := strings.CutPrefix(strings.TrimSpace(left), "@")
	p, err := parsePath(left)
	if !isItem || err != nil || hasOtherOperator(left) {
		return nil, false
	}
	if operator == "" {
		return func(item any) bool { return p.find(item) != nil }, true
	}
	equals, ok := parseLiteral(strings.TrimSpace(right))
	return func(item any) bool {
		value := p.find(item)
		return value != nil && equals(value) == (operator == "==")
	}, ok
}

// cutOperator splits a condition at its operator, which is "" if it has none.
func cutOperator(text string) (left, operator, right string) {
	at := indexOutside(text, func(rest string) bool { return strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!=") })
	if at < 0 {
		return text, "", ""
	}
	return text[:at], text[at : at+2], text[at+2:]
}

// hasOtherOperator reports whether a path has an operator in it that is not supported.
func hasOtherOperator(path string) bool {
	return indexOutside(path, func(rest string) bool { return strings.ContainsRune("<>=~&|", rune(rest[0])) }) >= 0
}

// parseLiteral returns whether a value equals the literal. A quoted one equals what is
// written like it, even if that is not a string.
func parseLiteral(text string) (equals func(value any) bool, ok bool) {
	if want, isQuoted := unquote(text); isQuoted {
		return func(value any) bool { return fmt.Sprint(value) == want }, true
	}
	if text == "true" || text == "false" {
		return func(value any) bool { return value == (text == "true") }, true
	}
	want, err := strconv.ParseFloat(text, 64)
	whole, notWhole := strconv.ParseInt(text, 10, 64) // which may be too large for a float64
	return func(value any) bool {
		switch v := value.(type) {
		case int64:
			return notWhole == nil && v == whole || notWhole != nil && float64(v) == want
		case float64:
			return v == want
		}
		return false
	}, err == nil
}

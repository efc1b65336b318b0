package fielderrors

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/internal/excerpt"
)

// Most is how many errors of an object are reported.
const Most = 100

// maxShown is how large the value of an error may be to be reported, and how much of a text is
// reported, in bytes.
const maxShown = 4 << 10

// First returns the errors to report, without values that are too large, with the beginning of long
// texts, and one that says that there are more. It does not change the errors that it is given.
func First(wrong field.ErrorList) field.ErrorList {
	told := slices.Clone(wrong[:min(len(wrong), Most)])
	for i, e := range told {
		short := *e
		short.Field, short.Detail = shortened(e.Field), shortened(e.Detail)
		if text, isText := e.BadValue.(string); isText {
			short.BadValue = shortened(text)
		} else if remaining(reflect.ValueOf(e.BadValue), maxShown) < 0 {
			short.BadValue = field.OmitValueType{}
		}
		told[i] = &short
	}
	if len(wrong) > Most {
		told = append(told, &field.Error{
			Type: field.ErrorTypeTooMany, BadValue: field.OmitValueType{}, Detail: fmt.Sprintf("the object has more errors than these %d", Most),
		})
	}
	return told
}

func shortened(text string) string { return excerpt.Of(text, maxShown) }

// remaining returns what is left of a budget of bytes after those of a value. It stops
// counting, and the result is negative, once the budget is used up.
func remaining(v reflect.Value, budget int) int {
	if budget--; budget < 0 {
		return budget
	}
	switch v.Kind() {
	case reflect.String:
		budget -= v.Len()
	case reflect.Pointer, reflect.Interface:
		budget = remaining(v.Elem(), budget)
	case reflect.Struct:
		for _, member := range v.Fields() {
			budget = remaining(member, budget)
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		for name, member := range v.Seq2() {
			if budget = remaining(member, remaining(name, budget)); budget < 0 {
				break
			}
		}
	}
	return budget
}

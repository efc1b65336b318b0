package fielderrors

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Most is how many errors of an object are told.
const Most = 100

// First returns the errors that are told, and one that says that there are more.
func First(wrong field.ErrorList) field.ErrorList {
	if len(wrong) <= Most {
		return wrong
	}
	return append(wrong[:Most:Most], &field.Error{
		Type: field.ErrorTypeTooMany, BadValue: field.OmitValueType{}, Detail: fmt.Sprintf("the object has more errors than these %d", Most),
	})
}

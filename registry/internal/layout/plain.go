package layout

import "time"

// fieldTypes has, for each field that a struct has, whether a value decodes to that.
type fieldTypes map[string]func(value any) bool

// plainFields are the fields of metadata, with those values that decoding and encoding leave as they are.
var plainFields = fieldTypes{
	"name": isText, "generateName": isText, "namespace": isText, "selfLink": isText, "uid": isText, "resourceVersion": isText,
	"generation": isInteger, "deletionGracePeriodSeconds": isInteger, "creationTimestamp": isTime, "deletionTimestamp": isTime,
	"labels": isTexts, "annotations": isTexts,
	"finalizers": listOf(isText), "ownerReferences": listOf(owner.has), managedFields: listOf(manager.has),
}

var owner = fieldTypes{
	"apiVersion": isText, "kind": isText, "name": isText, "uid": isText, "controller": isBool, "blockOwnerDeletion": isBool,
}

var manager = fieldTypes{
	"manager": isText, "operation": isText, "apiVersion": isText, "fieldsType": isText, "subresource": isText, "time": isTime,
	"fieldsV1": func(value any) bool { return !hasNull(value) },
}

// isPlain reports whether metadata certainly stays as it is when it is decoded to a struct and encoded
// again. Nearly all is, and to find that out takes less than a tenth of the time.
func isPlain(fields map[string]any) bool {
	for _, value := range fields {
		if isEmpty(value) {
			return false
		}
	}
	return plainFields.has(fields)
}

// has reports whether value is an object of such fields.
func (f fieldTypes) has(value any) bool {
	fields, is := value.(map[string]any)
	for name, value := range fields {
		if fits := f[name]; fits == nil || !fits(value) {
			return false
		}
	}
	return is
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

func isInteger(value any) bool {
	_, is := value.(int64)
	return is
}

func isBool(value any) bool {
	_, is := value.(bool)
	return is
}

func isTime(value any) bool {
	text, is := value.(string)
	if !is {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func isTexts(value any) bool {
	fields, is := value.(map[string]any)
	for _, value := range fields {
		if !isText(value) {
			return false
		}
	}
	return is
}

func listOf(fits func(any) bool) func(any) bool {
	return func(value any) bool {
		list, is := value.([]any)
		for _, item := range list {
			if !fits(item) {
				return false
			}
		}
		return is
	}
}

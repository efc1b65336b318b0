package apiextensions

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/internal/keywords"
)

// maxGone is how many paths of removed keywords are reported. A definition has room for a
// hundred thousand of them.
const maxGone = 100

// pruneSchemas removes the keywords that schemas do not have from those of a definition, and
// returns the paths of the first hundred. One that is misspelled would have no effect.
func pruneSchemas(o *object) (gone []string) {
	for i, v := range items(part(o.Object, "spec"), "versions") {
		at := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		keywords.Unknown(part(part(v, "schema"), "openAPIV3Schema"), at, func(in map[string]any, keyword string, at *field.Path) {
			delete(in, keyword)
			if len(gone) < maxGone {
				gone = append(gone, at.String())
			}
		})
	}
	return gone
}

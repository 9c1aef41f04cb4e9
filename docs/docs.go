// Package docs holds what of the documents the server gives to programs.
package docs

import _ "embed" // the description is a file

// OpenAPI describes all routes below /api/v1/.
//
//go:embed openapi.yaml
var OpenAPI []byte

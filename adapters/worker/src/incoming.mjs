// All headers of a request as one text, `name:value` a line. Neither can hold a line break.
export function headerLines(request) {
  let lines = "";
  for (const [name, value] of request.headers) lines += `${name}:${value}\n`;
  return lines;
}

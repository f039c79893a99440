import { join } from 'node:path'
import { defineConfig } from 'vite'

/**
 * Builds into `dist/`, which is committed: `dist/index.html`, the tags that load the console; `dist/header.js`, which all
 * other pages load, `dist/reading.js` with its style, for the documentation, and `dist/try.js`, for the API reference;
 * and `dist/console/` with what these load. Addresses are relative, because a gateway may publish the service below a
 * prefix.
 */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  publicDir: false,
  build: {
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: 'dist',
    assetsDir: 'console',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: {
        index: join(import.meta.dirname, 'index.html'),
        header: join(import.meta.dirname, 'src/header.tsx'),
        reading: join(import.meta.dirname, 'src/reading/main.ts'),
        try: join(import.meta.dirname, 'src/try.ts'),
      },
      preserveEntrySignatures: 'exports-only',
      output: {
        entryFileNames: ({ name }) => (name === 'index' ? 'console/[name]-[hash].js' : '[name].js'),
        assetFileNames: ({ names: [name] }) => (name === 'reading.css' ? name : 'console/[name]-[hash][extname]'),
      },
    },
  },
})
